#!/usr/bin/env node
import { nearest } from "../errors/nearest.ts";
import { type Command, parseCommandLine } from "./command.ts";
import { describeCommand, describeProgram } from "./help.ts";
import { serve } from "./serve.ts";
import { UsageError } from "./usage-error.ts";
import { readVersion } from "./version.ts";

const commands: readonly Command[] = [serve];

async function main(args: readonly string[]): Promise<number> {
  const [word, ...rest] = args;
  if (word === undefined || word === "help" || word === "--help" || word === "-h")
    return say(describeProgram(commands));
  if (word === "--version" || word === "-v") return say(`${readVersion()}\n`);
  const command = commands.find(({ name }) => name === word);
  if (command === undefined) throw new UsageError(unknownCommand(word));
  const parsed = parseCommandLine(rest, command.flags);
  if (parsed.has("help")) return say(describeCommand(command));
  if (parsed.has("version")) return say(`${readVersion()}\n`);
  return command.run(parsed);
}

function unknownCommand(word: string): string {
  const names = commands.map(({ name }) => name);
  const meant = nearest(word, names);
  return `unknown command ${JSON.stringify(word)}; ${meant === undefined ? `commands: ${names.join(", ")}` : `did you mean ${meant}?`}`;
}

function say(text: string): number {
  process.stdout.write(text);
  return 0;
}

/** What went wrong in one line; a stack only for what we did not foresee. */
function complain(error: unknown): number {
  const isOurs = error instanceof Error && "code" in error;
  process.stderr.write(
    `junctor: ${isOurs ? error.message : String(error instanceof Error ? error.stack : error)}\n`,
  );
  return error instanceof UsageError ? 2 : 1;
}

// A handler that ignores its abort signal must not keep a finished command alive.
process.exit(await main(process.argv.slice(2)).catch(complain));
