import { parseArgs } from "node:util";
import { nearest } from "../errors/nearest.ts";
import { UsageError } from "./usage-error.ts";

/** A flag as the help shows it; one with a `value` takes one. */
export interface Flag {
  /** What stands for its value in the help, such as `PORT`; a flag without it is a switch. */
  readonly value?: string;
  readonly help: string;
}

export type Flags = { readonly [name: string]: Flag };

/** One word after `junctor`. */
export interface Command {
  readonly name: string;
  readonly summary: string;
  /** What follows the name, without flags. */
  readonly operands?: string;
  readonly flags: Flags;
  /** Resolves with the exit code. */
  run(parsed: Parsed): Promise<number>;
}

/** A command line that made sense. */
export interface Parsed {
  /** Whether a switch was given. */
  has(flag: string): boolean;
  /** The value given to a flag. */
  valueOf(flag: string): string | undefined;
  readonly operands: readonly string[];
}

/** Every command knows these. */
export const commonFlags: Flags = {
  help: { help: "show this help" },
  version: { help: "show the version" },
};

/** Reads flags and operands. Throws a {@link UsageError} that names the right spelling of a wrong flag. */
export function parseCommandLine(args: readonly string[], flags: Flags): Parsed {
  const known = { ...flags, ...commonFlags };
  const options = Object.fromEntries(
    Object.entries(known).map(([name, { value }]) => [
      name,
      { type: value === undefined ? "boolean" : "string" } as const,
    ]),
  );
  const { tokens, values, positionals } = parseArgs({
    args: [...args],
    options,
    allowPositionals: true,
    strict: false,
    tokens: true,
  });
  for (const token of tokens) {
    if (token.kind === "option") checkOption(token.name, token.rawName, token.value, known);
  }
  return {
    has: (flag) => values[flag] === true,
    valueOf: (flag) => (typeof values[flag] === "string" ? values[flag] : undefined),
    operands: positionals,
  };
}

function checkOption(name: string, rawName: string, value: string | undefined, known: Flags): void {
  const flag = Object.hasOwn(known, name) ? known[name] : undefined;
  if (flag === undefined) {
    const meant = nearest(name, Object.keys(known));
    throw new UsageError(`unknown flag ${rawName}${meant === undefined ? "" : `; did you mean --${meant}?`}`);
  }
  if (flag.value !== undefined && value === undefined)
    throw new UsageError(`${rawName} needs a value: ${rawName} ${flag.value}`);
  if (flag.value === undefined && value !== undefined) throw new UsageError(`${rawName} takes no value`);
}

/** A flag's value as a TCP port. */
export function parsePort(flag: string, value: string): number {
  const port = Number(value);
  if (/^[0-9]+$/.test(value) && port <= 65_535) return port;
  throw new UsageError(`--${flag} needs a port number from 0 to 65535, not ${JSON.stringify(value)}`);
}
