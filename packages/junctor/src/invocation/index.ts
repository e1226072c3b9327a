/**
 * How commands are written in pages, examples and what `install` prints; tests hold them to it. The package is not on the registry yet, so
 * whoever takes its name there would decide what npx downloads and runs. With `--no-install` npx runs the copy of this project, or nothing.
 */
export const invocation = "npx --no-install junctor";

/** Whether npx runs a copy that is not in the PATH. */
const isInProject = /[/\\]node_modules[/\\]\.bin[/\\]/.test(process.argv[1] ?? "");

/** A command as messages and help write it: `junctor("check --json")`. Every message goes through it, so that people can type what they read. */
export function junctor(words: string): string {
  return `${isInProject ? invocation : "junctor"} ${words}`;
}
