import { suggest } from "@junctor/core/options";
import type { JsonSchema } from "@junctor/core/schema";

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

/** Most references that are followed; a schema with more refers to itself. */
const maxDepth = 16;

/** The type a schema describes. References are looked up in `root`; what is not understood is taken for anything. */
export function toValueType(schema: unknown, root: JsonSchema, depth = 0): ValueType {
  if (!isRecord(schema) || depth > maxDepth) return anything;
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
    at = isRecord(at) && Object.hasOwn(at, key) ? at[key] : undefined;
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
    return { ok: false, problem: `is none of ${texts.join(", ")}${hint && `; ${hint}`}` };
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

/** Each gives undefined for a text that is not of its kind. */
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
  object: (text) => parseJson(text, isRecord),
  string: (text) => text,
};

function parseJson(text: string, isWanted: (value: unknown) => boolean): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return isWanted(value) ? value : undefined;
  } catch {
    return undefined; // Not JSON: of another kind, or wrong, which the caller says better.
  }
}

/** As a shell takes it. */
function toWord(value: unknown): string {
  const text = toText(value);
  return /[^\w.:/+-]/.test(text) ? `'${text}'` : text;
}

function toText(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function isRecord(value: unknown): value is JsonSchema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
