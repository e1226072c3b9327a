/**
 * How a command is typed, in messages, pages and examples: a test holds them to it. The package is not on the registry yet, so whoever
 * takes its name there would decide what npx downloads and runs. With `--no-install` it runs the copy of this project, or nothing.
 */
export const invocation = "npx --no-install junctor";
