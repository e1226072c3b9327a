// Replaces modules that are loaded on demand and never needed here: ajv, the texts of all errors, YAML, the listener of Node.
export {};
