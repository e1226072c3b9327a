import { parseArgs } from "node:util";
import { BrandedError } from "@junctor/core/errors";
import { nearest } from "@junctor/core/options";
import { invocation, junctor } from "../../invocation/index.ts";
import {
  commandNames,
  type CommandRow,
  commonFlags,
  type FlagRow,
  flagsOf,
  type Parsed,
  rowOf,
} from "./commands.ts";

/**
 * Whether a command line asks for help or the version. Read word by word, before anything is checked, because those who
 * ask are those whose flags are wrong: in `serve --tcp --help` the last word is no port. What follows `--` is not ours.
 */
export function parseInfoFlag(args: readonly string[]): "help" | "version" | undefined {
  const end = args.indexOf("--");
  const words = end === -1 ? args : args.slice(0, end);
  const isAsked = (name: "help" | "version", letter: RegExp): boolean =>
    words.some((word) => word === `--${name}` || letter.test(word));
  if (isAsked("help", /^-v*h[hv]*$/)) return "help";
  return isAsked("version", /^-v+$/) ? "version" : undefined;
}

/** Reads flags and operands by the row of a command. Throws a {@link UsageError} that names the right spelling of a wrong flag. */
export function parseCommandLine(args: readonly string[], name: string): Parsed {
  const row = rowOf(name);
  const known = row === undefined ? commonFlags : flagsOf(row);
  const end = row?.takesCommand === true ? args.indexOf("--") : -1;
  const options = Object.fromEntries(
    Object.entries<FlagRow>(known).map(([flag, { value, short }]) => [
      flag,
      {
        type: value === undefined ? ("boolean" as const) : ("string" as const),
        ...(short === undefined ? {} : { short }),
      },
    ]),
  );
  const { tokens } = parseArgs({
    args: end === -1 ? [...args] : args.slice(0, end),
    options,
    allowPositionals: true,
    strict: false,
    tokens: true,
  });
  const given = new Map<string, string[]>();
  const operands: string[] = [];
  for (const token of tokens) {
    if (token.kind === "positional") operands.push(token.value);
    if (token.kind !== "option") continue;
    checkOption(token, known, name);
    given.set(token.name, [...(given.get(token.name) ?? []), token.value ?? ""]);
  }
  const flags: Readonly<Record<string, unknown>> = Object.fromEntries(
    Object.entries<FlagRow>(known).map(([flag, { value, many }]): readonly [string, unknown] => {
      const values = given.get(flag) ?? [];
      if (many) return [flag, values];
      return [flag, value === undefined ? given.has(flag) : values.at(-1)];
    }),
  );
  return { flags, operands, command: end === -1 ? undefined : args.slice(end + 1) };
}

/** Reads the words of a command, and does what they say. */
export function runCommand(
  name: string,
  run: (parsed: never) => Promise<number>,
  args: readonly string[],
): Promise<number> {
  // The row that the words are read by is the one that the type of `run` comes from.
  return run(parseCommandLine(args, name) as never);
}

interface Option {
  readonly name: string;
  readonly rawName: string;
  readonly value: string | undefined;
  readonly inlineValue: boolean | undefined;
}

function checkOption(option: Option, known: { readonly [name: string]: FlagRow }, command: string): void {
  const { name, rawName, value, inlineValue } = option;
  const flag = Object.hasOwn(known, name) ? known[name] : undefined;
  if (flag === undefined) {
    const meant = guessFlag(name, known);
    const otherwise =
      command === "call" && /^[A-Za-z]/.test(name)
        ? `an argument of the tool is written ${name}=VALUE, and flags of a server's own command go after --`
        : rowOf(command)?.takesCommand === true
          ? "flags of a server's own command go after --"
          : `${junctor(`${command} --help`)} lists its flags`;
    throw new UsageError(
      `unknown flag ${rawName}; ${meant === undefined ? otherwise : `did you mean ${meant}?`}`,
    );
  }
  // `--server --json` has forgotten a value; it does not name a server "--json".
  const isForgotten = value === undefined || (inlineValue !== true && value.startsWith("--"));
  if (flag.value !== undefined && isForgotten)
    throw new UsageError(`${rawName} needs a value: ${rawName} ${flag.value}`);
  if (flag.value === undefined && value !== undefined) throw new UsageError(`${rawName} takes no value`);
}

/** What people write for a flag that is called otherwise here. */
const guesses: { readonly [flag: string]: string } = {
  config: "c C f file configuration conf",
  port: "p P listen",
  host: "H bind address addr hostname",
  "log-level": "verbose V VV debug d quiet q silent s log loglevel trace",
  stdio: "stdin stdout",
  workers: "w threads processes cluster",
  header: "H key token auth authorization bearer api-key",
  env: "e environment var",
  timeout: "t wait",
  server: "url u s",
  json: "j output o format raw",
  args: "arguments input params",
  yes: "force assume-yes",
  "dry-run": "n dry whatif",
  follow: "tail watch w",
  level: "log-level verbose debug",
  print: "url no-browser p",
};

/** What a guess was most likely meant to say, in full. */
const spelled: { readonly [flag: string]: string } = {
  "log-level": "--log-level debug",
  header: '--header "Authorization: Bearer KEY"',
};

function guessFlag(name: string, known: { readonly [name: string]: FlagRow }): string | undefined {
  const guessed = Object.keys(known).find((flag) => guesses[flag]?.split(" ").includes(name));
  if (guessed === undefined) {
    const meant = nearest(name, Object.keys(known));
    return meant && `--${meant}`;
  }
  const value = known[guessed]?.value;
  return spelled[guessed] ?? (value === undefined ? `--${guessed}` : `--${guessed} ${value}`);
}

/** A flag's value as a TCP port. */
export function parsePort(flag: string, value: string): number {
  const port = Number(value);
  if (/^[0-9]+$/.test(value) && port <= 65_535) return port;
  throw new UsageError(`--${flag} needs a port number from 0 to 65535, not ${JSON.stringify(value)}`);
}

/** For a command that works on a config, and on nothing else. Throws a `UsageError`. */
export function refuseOperands(command: string, { operands: [stray] }: Pick<Parsed, "operands">): void {
  if (stray === undefined) return;
  const text = `${command} takes no operand, but got ${JSON.stringify(stray)}; write --config ${stray}`;
  throw new UsageError(text);
}

/** The person at the terminal wrote something we cannot do; one line, exit code 2. */
export class UsageError extends BrandedError {
  protected static override readonly brand = "UsageError";

  override readonly name = "UsageError";
  readonly code = "cli.usage";
}

/** The command that a word most likely means: what people write for it, or the nearest name. */
export function guessCommand(word: string): string | undefined {
  const names = new Map<string, string>(commandNames.map((name) => [name, name])).set("help", "help");
  for (const name of commandNames)
    for (const guess of rowOf(name)?.guesses?.split(" ") ?? []) names.set(guess, name);
  const lower = word.toLowerCase();
  return (
    names.get(lower) ??
    nearest(lower, [...commandNames, "help"]) ??
    names.get(nearest(lower, [...names.keys()]) ?? "")
  );
}

/** The help of the whole program: what the commands of each group do. */
export function describeProgram(): string {
  const rows = commandNames.flatMap((name) => {
    const { group, brief } = rowOf(name) as CommandRow;
    if (typeof brief !== "string") return [];
    const beside = commandNames.filter((other) => {
      const text = rowOf(other)?.brief;
      return typeof text === "object" && text.beside === name;
    });
    return [{ group, names: [name, ...beside].join(", "), brief }];
  });
  const width = Math.max(...rows.map(({ names }) => names.length));
  const groups = [...new Set(rows.map(({ group }) => group))];
  const lines = groups.flatMap((title) => [
    `${title}:`,
    ...rows
      .filter(({ group }) => group === title)
      .map(({ names, brief }) => `  ${names.padEnd(width)}  ${brief}`),
  ]);
  return [
    `Usage: ${junctor("COMMAND")} [flags]    COMMAND --help tells more about one`,
    "",
    ...lines,
    "",
    `Where junctor is not in the PATH, type ${invocation} COMMAND.`,
    exitCodes,
    "",
  ].join("\n");
}

const exitCodes = "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 no connection, 130 interrupted";

/** The help of one command. */
export function describeCommand(name: string): string {
  const row = rowOf(name);
  if (row === undefined) return describeProgram();
  const { summary, operands, takesCommand = false, examples, failure } = row;
  const usage = [
    `Usage: ${junctor(name)}`,
    operands,
    "[flags]",
    takesCommand ? "[-- COMMAND ARGS…]" : undefined,
  ];
  return [
    wrap(usage.filter((part) => part !== undefined).join(" "), lineWidth).join("\n       "),
    "",
    ...wrap(summary, lineWidth),
    "",
    ...describeFlags(flagsOf(row)),
    "",
    "Examples:",
    ...describeExamples(examples.map((example) => junctor(example))),
    ...(failure === undefined ? [] : ["", `Exit code 1: ${failure}`]),
    "",
  ].join("\n");
}

function describeFlags(flags: { readonly [name: string]: FlagRow }): readonly string[] {
  const rows = Object.entries(flags).map(([name, { value, short, help }]) => {
    const flag = `${short === undefined ? "" : `-${short}, `}--${name}${value === undefined ? "" : ` ${value}`}`;
    return [flag, help] as const;
  });
  const width = Math.max(...rows.map(([flag]) => flag.length));
  return rows.flatMap(([flag, help]) => {
    const [first = "", ...rest] = wrap(help, lineWidth - width - 4);
    return [`  ${flag.padEnd(width)}  ${first}`, ...rest.map((line) => " ".repeat(width + 4) + line)];
  });
}

/** What an example does stands beside it, or under it where that does not fit. */
function describeExamples(examples: readonly string[]): readonly string[] {
  const rows = examples.map((example) => example.split(/ {2,}/) as [string, string?]);
  const column = 4 + Math.max(...rows.map(([line, text]) => (text === undefined ? 0 : line.length)));
  const fits = rows.every(([, text = ""]) => column + text.length <= lineWidth);
  return rows.flatMap(([line, text]) => {
    if (text === undefined) return [`  ${line}`];
    return fits ? [`  ${line}`.padEnd(column) + text] : [`  ${line}`, `      ${text}`];
  });
}

/** The columns of most terminals. */
export const lineWidth = 80;

/** Breaks a text into lines of at most `width` letters, where words allow it. */
export function wrap(text: string, width: number): readonly string[] {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const longer = `${lines.at(-1) ?? ""} ${word}`;
    if (lines.length > 0 && longer.length <= width) lines.splice(-1, 1, longer);
    else lines.push(word);
  }
  return lines;
}
