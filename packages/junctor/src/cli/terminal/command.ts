import { parseArgs } from "node:util";
import { BrandedError } from "@junctor/core/errors";
import { isJsonObject } from "@junctor/core/json";
import { nearest, suggest } from "@junctor/core/options";
import type { JsonSchema } from "@junctor/core/schema";
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
 * Whether a command line asks for help or the version. Read word by word, before anything is checked, because help is wanted most where
 * flags are wrong: in `serve --tcp --help` the last word is not a port. What follows `--` is not ours.
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

/** Parses the words of a command and runs it. */
export function runCommand(
  name: string,
  run: (parsed: never) => Promise<number>,
  args: readonly string[],
): Promise<number> {
  // The words are parsed by the row that the type of `run` is derived from.
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

/** Other names that people try for a flag. */
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

/** The suggestion for a flag, where it is more than its name and value. */
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

const kinds = ["null", "boolean", "integer", "number", "array", "object", "string"] as const;
type ValueKind = (typeof kinds)[number];

/** What a schema accepts, as far as a person typing one value needs to know. */
export interface ValueType {
  /** Empty when anything goes. */
  readonly kinds: readonly ValueKind[];
  /** The only values there are. */
  readonly choices: readonly unknown[] | undefined;
  /** What an array holds. */
  readonly items: ValueType | undefined;
}

/** A value, or what was wrong with its text. */
type ParsedValue =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly problem: string };

const anything: ValueType = { kinds: [], choices: undefined, items: undefined };

/** The most references that are followed; a schema with more refers to itself. */
const maxDepth = 16;

/** The type a schema describes. References are looked up in `root`; what is not understood is taken for anything. */
export function toValueType(schema: unknown, root: JsonSchema, depth = 0): ValueType {
  if (!isJsonObject(schema) || depth > maxDepth) return anything;
  const { $ref, enum: listed, type, anyOf, oneOf, allOf, items } = schema;
  if (typeof $ref === "string") return toValueType(follow($ref, root), root, depth + 1);
  if (Object.hasOwn(schema, "const")) return { ...anything, choices: [schema["const"]] };
  if (Array.isArray(listed)) return { ...anything, choices: listed };
  const types = [anyOf, oneOf].flatMap((members) =>
    Array.isArray(members) ? members.map((member) => toValueType(member, root, depth + 1)) : [],
  );
  const joined = types.length === 0 ? anything : join(types);
  if (joined.choices !== undefined) return joined;
  const named = kinds.filter((kind) => (Array.isArray(type) ? type.includes(kind) : type === kind));
  if (named.length > 0) {
    const inside = items === undefined ? undefined : toValueType(items, root, depth + 1);
    return { ...anything, kinds: named, items: inside };
  }
  if (types.length > 0) return joined;
  const parts = Array.isArray(allOf) ? allOf.map((part) => toValueType(part, root, depth + 1)) : [];
  return parts.find((part) => part !== anything) ?? anything;
}

function join(types: readonly ValueType[]): ValueType {
  if (types.every(({ choices }) => choices !== undefined))
    return { ...anything, choices: types.flatMap(({ choices }) => choices ?? []) };
  // A choice beside a type (`null`, mostly) is of some type too.
  const found = new Set(types.flatMap((type) => [...type.kinds, ...(type.choices ?? []).map(kindOf)]));
  if (types.some((type) => type.kinds.length === 0 && type.choices === undefined)) return anything;
  return {
    kinds: kinds.filter((kind) => found.has(kind)),
    choices: undefined,
    items: types.find(({ items }) => items !== undefined)?.items,
  };
}

function kindOf(value: unknown): ValueKind {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return kinds.find((kind) => kind === typeof value) ?? "object";
}

function follow(ref: string, root: JsonSchema): unknown {
  if (!ref.startsWith("#")) return undefined;
  let at: unknown = root;
  for (const step of ref.slice(1).split("/").slice(1)) {
    const key = step.replaceAll("~1", "/").replaceAll("~0", "~");
    at = isJsonObject(at) && Object.hasOwn(at, key) ? at[key] : undefined;
  }
  return at;
}

/** The type as one would write it in a manual: `integer`, `red|green`, `string[]`. */
export function describeType({ kinds, choices, items }: ValueType): string {
  if (choices !== undefined) return choices.map(toWord).join("|");
  if (kinds.length === 0) return "any";
  return kinds
    .map((kind) => (kind === "array" && items !== undefined ? `${nested(items)}[]` : kind))
    .join("|");
}

function nested(type: ValueType): string {
  const described = describeType(type);
  return described.includes("|") ? `(${described})` : described;
}

/**
 * What a person meant by a value, given the type it should have. Several texts are the items of an array; so is a
 * single one, unless it is written as a JSON array.
 */
export function parseValue(texts: readonly string[], type: ValueType): ParsedValue {
  const [text = ""] = texts;
  const isList = type.kinds.includes("array") && !text.trimStart().startsWith("[");
  if (texts.length > 1 && !isList) return { ok: false, problem: `was given ${texts.length} times` };
  if (isList && (texts.length > 1 || !type.kinds.includes("string"))) return parseItems(texts, type.items);
  return parseOne(text, type);
}

const notObjects = `is not a JSON array, such as '[{"key":"value"}]'`;

function parseItems(texts: readonly string[], items: ValueType | undefined): ParsedValue {
  const values: unknown[] = [];
  for (const text of texts) {
    const parsed = parseOne(text, items ?? anything);
    if (!parsed.ok)
      return { ok: false, problem: items?.kinds.includes("object") ? notObjects : parsed.problem };
    values.push(parsed.value);
  }
  return { ok: true, value: values };
}

function parseOne(text: string, { kinds, choices }: ValueType): ParsedValue {
  if (choices !== undefined) {
    const index = choices.findIndex((choice) => toText(choice) === text);
    if (index !== -1) return { ok: true, value: choices[index] };
    const texts = choices.map(toText);
    const hint = suggest(text, texts, "");
    return { ok: false, problem: `is not one of ${texts.join(", ")}${hint && `; ${hint}`}` };
  }
  if (kinds.length === 0) {
    const value = parseJson(text, () => true);
    return { ok: true, value: value === undefined ? text : value };
  }
  for (const kind of kinds) {
    const value = readers[kind](text);
    if (value !== undefined) return { ok: true, value };
  }
  const isWhole = kinds.some((kind) => kind === "integer" || kind === "number") && /^-?\d+$/.test(text);
  const problem = isWhole
    ? `is too large a number to be sent exactly (the limit is ${Number.MAX_SAFE_INTEGER})`
    : `is not ${kinds.map((kind) => expected[kind]).join(" or ")}`;
  return { ok: false, problem };
}

const expected: { readonly [Name in ValueKind]: string } = {
  null: "null",
  boolean: "true or false",
  integer: "an integer",
  number: "a number",
  array: `a JSON array, such as '["a","b"]'`,
  object: `a JSON object, such as '{"key":"value"}'`,
  string: "a string",
};

/** Each returns undefined for a text that is not of its kind. */
const readers: { readonly [Name in ValueKind]: (text: string) => unknown } = {
  null: (text) => (text === "null" ? null : undefined),
  boolean: (text) => (text === "true" ? true : text === "false" ? false : undefined),
  integer: (text) => parseJson(text, Number.isSafeInteger),
  number: (text) =>
    parseJson(
      text,
      (value) => Number.isFinite(value) && (Number.isSafeInteger(value) || !/^-?\d+$/.test(text)),
    ),
  array: (text) => parseJson(text, Array.isArray),
  object: (text) => parseJson(text, isJsonObject),
  string: (text) => text,
};

function parseJson(text: string, isWanted: (value: unknown) => boolean): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return isWanted(value) ? value : undefined;
  } catch {
    return undefined; // Not JSON; the caller says what was expected.
  }
}

/** Quoted for a shell, where that is needed. */
function toWord(value: unknown): string {
  const text = toText(value);
  return /[^\w.:/+-]/.test(text) ? `'${text}'` : text;
}

function toText(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
