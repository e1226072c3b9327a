// In place of what is loaded when it is first needed, and is not needed here: ajv, the texts of all errors, YAML, the listener of Node.
export {};
