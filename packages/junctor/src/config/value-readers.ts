import { resolve } from "node:path";
import type { JsonObject } from "@junctor/core/json";
import { nearest } from "@junctor/core/options";
import type { Findings } from "./findings.ts";

/** A value inside a config, and where it stands. */
export interface ConfigValue {
  readonly value: unknown;
  readonly path: string;
  readonly findings: Findings;
}

/** An object inside a config. */
export interface ConfigObject {
  readonly path: string;
  readonly findings: Findings;
  entries(): readonly (readonly [key: string, value: ConfigValue])[];
  /** Whether there is something else than null. */
  has(key: string): boolean;
  get(key: string): ConfigValue;
}

/** The value as an object; undefined for anything else, arrays included. */
export function toObject({ value, path, findings }: ConfigValue): ConfigObject | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  const fields = value as JsonObject;
  // Only what was written: a server may be called `constructor`.
  const read = (key: string): unknown => (Object.hasOwn(fields, key) ? fields[key] : undefined);
  const get = (key: string): ConfigValue => ({ value: read(key), path: joinPath(path, key), findings });
  return {
    path,
    findings,
    entries: () => Object.keys(fields).map((key) => [key, get(key)] as const),
    has: (key) => read(key) !== undefined && read(key) !== null,
    get,
  };
}

/** `mcpServers` and `github` give `mcpServers.github`, `args` and `0` give `args[0]`. */
export function joinPath(path: string, key: string | number): string {
  if (typeof key === "number") return `${path}[${key}]`;
  if (!/^[\w$@-]+$/.test(key)) return `${path}[${JSON.stringify(key)}]`;
  return path === "" ? key : `${path}.${key}`;
}

/** Reports a mistake. Returns undefined, as readers do for a wrong value. */
export function refuse({ path, findings }: Omit<ConfigValue, "value">, message: string): undefined {
  findings.issue(path, message);
}

/** Reports a setting that is odd but not wrong. */
export function warn({ path, findings }: Omit<ConfigValue, "value">, message: string): void {
  findings.warn(path, message);
}

// Each reader returns undefined for a value that is absent or null, and for a wrong value, which it has reported. So a
// mistake is one issue, and the rest of the config is still read.

/** An object; `example` is one that may stand there. */
export function readObject(given: ConfigValue, example: string): ConfigObject | undefined {
  return toObject(given) ?? refuseKind(given, "an object", example);
}

/** An object, empty when there is none. */
export function readObjectOrEmpty(given: ConfigValue, example: string): ConfigObject {
  return readObject(given, example) ?? (toObject({ ...given, value: {} }) as ConfigObject);
}

/** Hints for keys that are often tried. */
export interface KeyHints {
  readonly [key: string]: string;
}

/** For objects of our own format: every unknown key is an issue. Returns whether all are known. */
export function refuseUnknownKeys(
  object: ConfigObject,
  known: readonly string[],
  hints: KeyHints = {},
): boolean {
  const unknown = object.entries().filter(([key]) => !known.includes(key));
  const list = known.join(", ");
  for (const [key, given] of unknown) {
    const near = nearest(key, known);
    if (Object.hasOwn(hints, key)) refuse(given, `does not belong here: ${hints[key]}`);
    else if (near === undefined) refuse(given, `is not known here: write one of ${list}`);
    else refuse(given, `is not known here: did you mean ${near}? (There may be ${list}.)`);
  }
  return unknown.length === 0;
}

/** A text with its variables filled in, possibly empty. */
export function readAnyText(given: ConfigValue, example: string): string | undefined {
  const { value, path, findings } = given;
  return typeof value === "string" ? findings.expand(value, path) : refuseKind(given, "a string", example);
}

/** A text that must not be empty. */
export function readText(given: ConfigValue, example: string): string | undefined {
  const text = readAnyText(given, example);
  return text?.trim() === "" ? refuse(given, `is empty: write ${example}`) : text;
}

/** A path, resolved against the folder of the config. */
export function readPath(given: ConfigValue): string | undefined {
  const file = readText(given, '"./file"');
  const { folder } = given.findings.source;
  return file === undefined || folder === undefined ? file : resolve(folder, file);
}

/** A text that fits a pattern; `problem` is the message for any other. */
export function readFitting(
  given: ConfigValue,
  example: string,
  pattern: RegExp,
  problem: string,
): string | undefined {
  const text = readText(given, example);
  return text === undefined || pattern.test(text) ? text : refuse(given, problem);
}

/** A list. Items that are wrong are left out. */
export function readList<Item>(
  given: ConfigValue,
  example: string,
  readItem: (item: ConfigValue) => Item | undefined,
  what = "a string",
): readonly Item[] {
  const { value, path, findings } = given;
  if (!Array.isArray(value)) return refuseKind(given, "an array of strings", example) ?? [];
  return value
    .map((each: unknown, index) => {
      const item = { value: each, path: joinPath(path, index), findings };
      if (each === null || each === undefined) refuse(item, `must be ${what}: write ${example}`);
      return readItem(item);
    })
    .filter((item) => item !== undefined);
}

/** A list of texts, none of them empty. */
export function readTexts(given: ConfigValue, example: string): readonly string[] {
  return readList(given, example, (item) => readText(item, example));
}

/** A list of globs of which a name must fit one. An empty list is refused: some would read it as nothing, others as all. */
export function readAllowed(given: ConfigValue, example: string): readonly string[] {
  if (Array.isArray(given.value) && given.value.length === 0)
    refuse(given, 'is empty: leave it out to allow all, or write "deny": ["*"] to allow nothing');
  return readTexts(given, example);
}

export function readFlag(given: ConfigValue): boolean | undefined {
  return typeof given.value === "boolean" ? given.value : refuseKind(given, "true or false", "true");
}

interface Range {
  readonly min: number;
  readonly max: number;
  readonly example: number;
}

/** Times in milliseconds. More than this makes Node's timers fire at once. */
export const timeRange = (example: number): Range => ({ min: 1, max: 2 ** 31 - 1, example });

/** A whole number, or a variable that holds one. */
export function readNumber(given: ConfigValue, { min, max, example }: Range): number | undefined {
  let { value } = given;
  if (typeof value === "string" && value.includes("${")) {
    const text = given.findings.expand(value, given.path);
    if (text === undefined) return undefined;
    value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  }
  if (typeof value !== "number") return refuseKind(given, "a number", String(example));
  if (Number.isInteger(value) && value >= min && value <= max) return value;
  return refuse(given, `must be a whole number from ${min} to ${max}: write ${example}`);
}

/** One of a few words. */
export function readChoice<Choice extends string>(
  given: ConfigValue,
  choices: readonly Choice[],
): Choice | undefined {
  const text = readAnyText(given, JSON.stringify(choices[0]));
  const choice = choices.find((candidate) => candidate === text);
  if (text === undefined || choice !== undefined) return choice;
  const near = nearest(text, choices);
  const hint = near === undefined ? "" : `: did you mean ${JSON.stringify(near)}?`;
  const list = choices.map((each) => JSON.stringify(each)).join(", ");
  return refuse(given, `must be one of ${list}${hint}`);
}

/** Describes a wrong value by its kind alone: the value itself may be a secret. */
function refuseKind(given: ConfigValue, wanted: string, example: string): undefined {
  const { value } = given;
  if (value === undefined || value === null) return;
  const kind = Array.isArray(value)
    ? "an array"
    : typeof value === "object"
      ? "an object"
      : `a ${typeof value}`;
  return refuse(given, `must be ${wanted}, not ${kind}: write ${example}`);
}
