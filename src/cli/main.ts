#!/usr/bin/env node
import { nearest } from "../errors/nearest.ts";
import { type Command, parseCommandLine } from "./command.ts";
import { toComplaint } from "./complaint.ts";
import { describeCommand, describeProgram } from "./help.ts";
import { note, print } from "./print.ts";
import { UsageError } from "./usage-error.ts";
import { readVersion } from "./version.ts";

/** Loaded when they are wanted: `junctor serve --stdio` starts in half the time without the client, and is started often. */
const commands: { readonly [name: string]: () => Promise<Command> } = {
  serve: async () => (await import("./serve.ts")).serve,
  tools: async () => (await import("./tools.ts")).tools,
  call: async () => (await import("./call.ts")).call,
};

async function main(args: readonly string[]): Promise<number> {
  const [word, ...rest] = args;
  if (word === undefined || word === "help" || word === "--help" || word === "-h")
    return say(describeProgram(await Promise.all(Object.values(commands).map((load) => load()))));
  if (word === "--version" || word === "-v") return say(`${readVersion()}\n`);
  const load = Object.hasOwn(commands, word) ? commands[word] : undefined;
  if (load === undefined) throw new UsageError(unknownCommand(word));
  const command = await load();
  const parsed = parseCommandLine(rest, command);
  if (parsed.has("help")) return say(describeCommand(command));
  if (parsed.has("version")) return say(`${readVersion()}\n`);
  return command.run(parsed);
}

function unknownCommand(word: string): string {
  const names = Object.keys(commands);
  const meant = nearest(word, names);
  return `unknown command ${JSON.stringify(word)}; ${meant === undefined ? `commands: ${names.join(", ")}` : `did you mean ${meant}?`}`;
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

// A handler that ignores its abort signal must not keep a finished command alive.
process.exit(await main(process.argv.slice(2)).catch(complain));
