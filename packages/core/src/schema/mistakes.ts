import { SchemaError } from "../errors/index.ts";
import { suggest } from "../options/index.ts";
import { describeValue, toPointer } from "./issue.ts";
import { type Position, positionOf } from "./survey.ts";
import type { JsonSchema } from "./types.ts";

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
  const given: readonly unknown[] = Array.isArray(type) ? type : type === undefined ? [] : [type];
  const wrong = given.find((each) => !types.includes(each as string));
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

/** A pattern is read as Unicode, and else in the older syntax. */
function findPatternFault(pattern: string): string | undefined {
  if (isPattern(pattern, "u") || isPattern(pattern, "")) return undefined;
  return `has the pattern ${JSON.stringify(pattern)}, which is no regular expression`;
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
