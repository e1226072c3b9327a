#!/usr/bin/env node
import { nearest } from "../options/nearest.ts";
import {
  type Command,
  type Flags,
  UsageError,
  commonFlags,
  parseCommandLine,
  parseInfoFlag,
} from "./command.ts";
import { toComplaint } from "./complaint.ts";
import { note, print } from "./print.ts";
import { readVersion } from "./version.ts";

/** Loaded when they are wanted: `junctor serve --stdio` starts in half the time without the client, and is started often. */
const commands: { readonly [name: string]: () => Promise<Command> } = {
  serve: async () => (await import("./serve.ts")).serve,
  tools: async () => (await import("./tools.ts")).tools,
  call: async () => (await import("./call.ts")).call,
  check: async () => (await import("./check.ts")).check,
};

async function main(args: readonly string[]): Promise<number> {
  const [word = "help", ...rest] = args;
  const info = parseInfoFlag(args);
  if (info === "version") return say(`${readVersion()}\n`);
  if (info === "help") return say(await describeFirst(args));
  if (word === "help") return say(await describeTopic(rest[0]));
  const command = await loadCommand(word);
  return command.run(parseCommandLine(rest, command));
}

async function loadCommand(word: string): Promise<Command> {
  const load = Object.hasOwn(commands, word) ? commands[word] : undefined;
  if (load === undefined)
    throw new UsageError(word.startsWith("-") ? unknownFlag(word) : unknownCommand(word));
  return load();
}

/** The help of the first command that is named, wherever that is; else of the whole program. */
function describeFirst(args: readonly string[]): Promise<string> {
  return describeTopic(args.find((word) => Object.hasOwn(commands, word)));
}

async function describeTopic(name: string | undefined): Promise<string> {
  if (name !== undefined && name !== "help") return describeCommand(await loadCommand(name));
  return describeProgram(await Promise.all(Object.values(commands).map((load) => load())));
}

function unknownCommand(word: string): string {
  const names = Object.keys(commands);
  const meant = nearest(word, [...names, "help"]);
  return `unknown command ${JSON.stringify(word)}; ${meant === undefined ? `commands: ${names.join(", ")}` : `did you mean ${meant}?`}`;
}

function unknownFlag(word: string): string {
  const meant = nearest(word.replaceAll(/^-+|=.*$/gs, ""), Object.keys(commonFlags));
  const first = `a command comes first: ${Object.keys(commands).join(", ")}`;
  return `unknown flag ${word}; ${meant === undefined ? first : `did you mean --${meant}?`}`;
}

async function say(text: string): Promise<number> {
  await print(text);
  return 0;
}

async function complain(error: unknown): Promise<number> {
  const { text, exitCode } = toComplaint(error);
  await note(text);
  return exitCode;
}

// Whoever closed our output does not want to read it; that is no reason to stop serving others.
process.stderr.on("error", () => {});
process.stdout.on("error", () => {});

// A handler that ignores its abort signal must not keep a finished command alive.
process.exit(await main(process.argv.slice(2)).catch(complain));

/** The help of the whole program. */
function describeProgram(commands: readonly Command[]): string {
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
