import { type Command, commonFlags, type Flags } from "./command.ts";

/** The help of the whole program. */
export function describeProgram(commands: readonly Command[]): string {
  const width = Math.max(...commands.map(({ name }) => name.length));
  const lines = commands.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}`);
  return [
    "Usage: junctor COMMAND [flags]",
    "",
    ...lines,
    "",
    "junctor COMMAND --help tells more about a command.",
    "",
  ].join("\n");
}

/** The help of one command. */
export function describeCommand({ name, summary, operands, flags }: Command): string {
  const usage = ["Usage: junctor", name, ...(operands === undefined ? [] : [operands]), "[flags]"].join(" ");
  return [usage, "", summary, "", ...describeFlags({ ...flags, ...commonFlags }), ""].join("\n");
}

function describeFlags(flags: Flags): readonly string[] {
  const rows = Object.entries(flags).map(
    ([name, { value, help }]) => [`--${name}${value === undefined ? "" : ` ${value}`}`, help] as const,
  );
  const width = Math.max(...rows.map(([flag]) => flag.length));
  return rows.map(([flag, help]) => `  ${flag.padEnd(width)}  ${help}`);
}
