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
    "Exit codes: 0 done, 1 the tool failed, 2 wrong usage, 3 no connection or a protocol error, 130 interrupted.",
    "",
  ].join("\n");
}

/** The help of one command. */
export function describeCommand(command: Command): string {
  const { name, summary, operands, flags, takesCommand = false, examples = [] } = command;
  const usage = [
    "Usage: junctor",
    name,
    operands,
    "[flags]",
    takesCommand ? "[-- COMMAND ARGS…]" : undefined,
  ];
  return [
    usage.filter((part) => part !== undefined).join(" "),
    "",
    summary,
    "",
    ...describeFlags({ ...flags, ...commonFlags }),
    ...(examples.length === 0 ? [] : ["", "Examples:", ...examples.map((example) => `  ${example}`)]),
    "",
  ].join("\n");
}

function describeFlags(flags: Flags): readonly string[] {
  const rows = Object.entries(flags).map(([name, { value, short, help }]) => {
    const flag = `${short === undefined ? "" : `-${short}, `}--${name}${value === undefined ? "" : ` ${value}`}`;
    return [flag, help] as const;
  });
  const width = Math.max(...rows.map(([flag]) => flag.length));
  return rows.map(([flag, help]) => `  ${flag.padEnd(width)}  ${help}`);
}
