import { SchemaError } from "../errors/index.ts";
import { suggest } from "../options/index.ts";
import { toPointer, describeValue, type JsonSchema, type SchemaLimits } from "./types.ts";

/** One subschema that references are resolved from, or that can be referred to. */
export interface Subschema {
  readonly node: JsonSchema;
  readonly path: string;
  /** The nearest enclosing subschema, or undefined for the root. */
  readonly parent: Subschema | undefined;
}

/** What one walk through a schema document learns. */
interface Survey {
  /** Every subschema that names itself or refers to another; the root is always the first. */
  readonly subschemas: readonly Subschema[];
  /** Whether the time to check a value grows no faster than the value, as far as a quick check can tell. */
  readonly isLinear: boolean;
}

const namingKeywords = ["$id", "$anchor", "$dynamicAnchor", "$ref", "$dynamicRef", "$recursiveRef"];
// Backtracking, pairwise comparison, and recursion through both branches of an anyOf: all can be exponential.
const costlyKeywords = ["patternProperties", "uniqueItems", "$ref", "$dynamicRef", "$recursiveRef"];
const maxLinearNodes = 200;

const part = String.raw`(?:\[(?:[^\]\\]|\\.)+\]|\\[dDwWsS./-]|[\w .:/@#=,;-])`;
/**
 * A pattern that is anchored at the start and repeats at most its last part, such as `^\d{4}$` or `^[a-z]+$`:
 * it reads each character once.
 */
const linearPattern: RegExp = new RegExp(
  String.raw`^\^(?:${part}(?:\{\d+\})?)*(?:${part}(?:[*+?]|\{\d+,\d*\}))?\$?$`,
);

/**
 * Walks a document once, holding it to its limits. The walk itself is limited, so that a cyclic object or one that
 * shares a part a million times ends it early too.
 *
 * @throws {@link SchemaError} `schema.too_deep`, `schema.too_complex`, `schema.too_large`, `schema.invalid`.
 */
export function surveySchema(schema: JsonSchema, limits: SchemaLimits): Survey {
  const subschemas: Subschema[] = [];
  const keys: PropertyKey[] = [];
  let nodes = 0;
  let isLinear = true;

  const fail = (code: "schema.too_deep" | "schema.too_complex", limit: number, what: string): never => {
    throw new SchemaError(code, `The schema ${what}, at ${toPointer(keys) || "/"}. The limit is ${limit}.`, {
      path: toPointer(keys),
      limit,
    });
  };

  const checkPattern = (pattern: string): void => {
    if (pattern.length > limits.maxPatternLength) {
      fail("schema.too_complex", limits.maxPatternLength, `has a pattern of ${pattern.length} characters`);
    }
  };

  const visit = (value: unknown, position: Position, parent: Subschema | undefined): void => {
    if (typeof value !== "object" || value === null) return;
    if (keys.length >= limits.maxDepth) fail("schema.too_deep", limits.maxDepth, "is nested too deeply");
    if (Array.isArray(value)) {
      for (const [index, item] of value.entries()) visitMember(item, index, position, parent);
      return;
    }
    nodes += 1;
    if (nodes > limits.maxSubschemas)
      fail("schema.too_complex", limits.maxSubschemas, "has too many subschemas");

    const node = value as JsonSchema;
    let self = parent;
    if (position === "schema") {
      if (typeof node["pattern"] === "string") {
        checkPattern(node["pattern"]);
        if (!linearPattern.test(node["pattern"])) isLinear = false;
      }
      if (isObject(node["patternProperties"])) Object.keys(node["patternProperties"]).forEach(checkPattern);
      if (costlyKeywords.some((keyword) => Object.hasOwn(node, keyword))) isLinear = false;
      if (parent === undefined || namingKeywords.some((keyword) => Object.hasOwn(node, keyword))) {
        self = { node, path: toPointer(keys), parent };
        subschemas.push(self);
      }
    }
    for (const [key, member] of Object.entries(node))
      visitMember(member, key, positionOf(position, key), self);
  };

  const visitMember = (
    value: unknown,
    key: PropertyKey,
    position: Position,
    parent: Subschema | undefined,
  ): void => {
    keys.push(key);
    visit(value, position, parent);
    keys.pop();
  };

  visit(schema, "schema", undefined);
  checkSize(schema, limits.maxBytes);
  return { subschemas, isLinear: isLinear && nodes <= maxLinearNodes };
}

function checkSize(schema: JsonSchema, maxBytes: number): void {
  let text: string;
  try {
    text = JSON.stringify(schema);
  } catch (cause) {
    throw new SchemaError("schema.invalid", "The schema cannot be written as JSON.", { cause });
  }
  // No character takes more than three bytes per UTF-16 unit, so most documents need no second look.
  if (text.length * 3 <= maxBytes) return;
  const bytes = new TextEncoder().encode(text).length;
  if (bytes > maxBytes) {
    throw new SchemaError(
      "schema.too_large",
      `The schema is ${bytes} bytes of JSON. The limit is ${maxBytes}.`,
      {
        limit: maxBytes,
      },
    );
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * What an object inside a schema document is. `$ref` is a reference in a schema, a property's name in a map, and
 * nothing at all in data.
 */
export type Position = "schema" | "map" | "data";

const mapKeywords = new Set([
  "$defs",
  "definitions",
  "dependencies",
  "dependentSchemas",
  "patternProperties",
  "properties",
]);

const schemaKeywords = new Set([
  "additionalItems",
  "additionalProperties",
  "allOf",
  "anyOf",
  "contains",
  "contentSchema",
  "else",
  "if",
  "items",
  "not",
  "oneOf",
  "prefixItems",
  "propertyNames",
  "then",
  "unevaluatedItems",
  "unevaluatedProperties",
]);

/**
 * The position of a member, from that of the object it is in. What sits under an unknown keyword is data until a
 * reference points into it; such references are followed by the compiler, and refused there if they lead nowhere.
 */
export function positionOf(parent: Position, key: string): Position {
  if (parent === "map") return "schema";
  if (parent === "data") return "data";
  if (mapKeywords.has(key)) return "map";
  return schemaKeywords.has(key) ? "schema" : "data";
}

const types = ["object", "array", "string", "number", "integer", "boolean", "null"];

/** Documents may be cyclic or deep; the survey refuses those. */
const maxDepth = 64;

/**
 * Finds the mistakes that people make in a JSON Schema of their own. The compiler finds them too, but it is loaded at the first call.
 *
 * @throws {@link SchemaError} `schema.invalid`.
 */
export function assertWellWritten(schema: JsonSchema): void {
  visit(schema, "schema", []);
}

function visit(value: unknown, position: Position, keys: readonly PropertyKey[]): void {
  if (typeof value !== "object" || value === null || position === "data" || keys.length > maxDepth) return;
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) visit(item, position, [...keys, index]);
    return;
  }
  const fault = position === "schema" ? findFault(value as JsonSchema) : undefined;
  if (fault !== undefined)
    throw new SchemaError("schema.invalid", `The schema at ${toPointer(keys) || "/"} ${fault}.`, {
      path: toPointer(keys),
    });
  for (const [key, member] of Object.entries(value)) visit(member, positionOf(position, key), [...keys, key]);
}

function findFault({ type, properties, required, pattern, enum: choices }: JsonSchema): string | undefined {
  const allTypes: readonly unknown[] = Array.isArray(type) ? type : type === undefined ? [] : [type];
  const wrong = allTypes.find((name) => !types.includes(name as string));
  if (wrong !== undefined) {
    const name = JSON.stringify(wrong);
    return `has the type ${name}; ${suggest(name, types, `the types are ${types.join(", ")}`)}`;
  }
  if (typeof required === "boolean")
    return 'has required: true; write the names in the object around it, such as required: ["city"]';
  if (required !== undefined && !isStrings(required))
    return `has a required that is ${describeValue(required)}; write an array of names`;
  if (choices !== undefined && !Array.isArray(choices))
    return `has an enum that is ${describeValue(choices)}; write an array of values`;
  const flat = Object.entries(properties ?? {}).find(([, property]) => !isSchema(property));
  if (flat !== undefined)
    return `has the property ${JSON.stringify(flat[0])} that is ${describeValue(flat[1])}; write { type: "string" }`;
  return typeof pattern === "string" ? findPatternFault(pattern) : undefined;
}

/** A pattern is tried as Unicode first, then in the older syntax. */
function findPatternFault(pattern: string): string | undefined {
  if (isPattern(pattern, "u") || isPattern(pattern, "")) return undefined;
  return `has the pattern ${JSON.stringify(pattern)}, which is not a regular expression`;
}

function isPattern(pattern: string, flags: string): boolean {
  try {
    return new RegExp(pattern, flags) instanceof RegExp;
  } catch {
    return false;
  }
}

function isStrings(value: unknown): boolean {
  return Array.isArray(value) && value.every((name) => typeof name === "string");
}

function isSchema(value: unknown): boolean {
  return (typeof value === "object" && value !== null && !Array.isArray(value)) || typeof value === "boolean";
}
