import { SchemaError } from "@junctor/core/errors";
import {
  fromJsonSchema,
  toPointer,
  assertWellWritten,
  type JsonSchema,
  type Schema,
  type SchemaLimits,
  defaultSchemaLimits,
} from "@junctor/core/schema";
import type { StandardSchemaV1 } from "@standard-schema/spec";
import type { FromSchema } from "./from-schema.ts";
import { fromStandardSchema } from "./standard-schema.ts";

export type { Checked, JsonSchema, Schema } from "@junctor/core/schema";

/** What a tool's schema may be written as: a JSON Schema, or a schema of zod, valibot, arktype and the like. */
export type SchemaSource = JsonSchema | StandardSchemaV1;

/** What callers may send: the type before defaults and transforms. */
export type InferredInput<Source> = Source extends StandardSchemaV1
  ? StandardSchemaV1.InferInput<Source>
  : InferredJson<Source>;

/** What a handler gets: the type after defaults and transforms. */
export type InferredOutput<Source> = Source extends StandardSchemaV1
  ? StandardSchemaV1.InferOutput<Source>
  : InferredJson<Source>;

/** By the literal of a JSON Schema; a document that is known when the program runs says nothing. */
type InferredJson<Source> = string extends keyof Source ? Record<string, unknown> : Known<FromSchema<Source>>;
type Known<Value> = unknown extends Value ? Record<string, unknown> : Value;

/** How {@link toSchema} converts, and which faults it accepts. */
export interface SchemaOptions {
  /**
   * Which side of a Standard Schema to list: what goes in, or what comes out after transforms. Default `"input"`; use
   * `"output"` for a tool's `outputSchema`.
   */
  readonly side?: "input" | "output";
  readonly limits?: Partial<SchemaLimits>;
  /** Names a schema of our own in errors, such as `Tool "weather": input`. Mistakes that the compiler would find later are errors then. */
  readonly what?: string;
}

/**
 * Makes a schema that can be listed and checked with. Cheap: a JSON Schema is walked once for its dialect, its size and
 * its references, and compiled only when first needed, so one bad schema never spoils a list.
 *
 * @throws {@link SchemaError} when the dialect is unknown, a limit is passed, a reference leads nowhere, or a Standard
 * Schema cannot say its JSON Schema.
 * @example
 * const schema = toSchema(z.object({ city: z.string() }));
 * const checked = await schema.check({ city: 3 });
 * if (!checked.ok) throw new ToolError(describeIssues(checked.issues));
 */
export function toSchema(source: SchemaSource, options: SchemaOptions = {}): Schema {
  const { what } = options;
  const limits = { ...defaultSchemaLimits, ...options.limits };
  if (!isStandardSchema(source)) assertNoRawShape(source, what ?? "The schema");
  try {
    if (isStandardSchema(source)) return fromStandardSchema(source, options.side ?? "input", limits);
    if (what !== undefined) assertWellWritten(source);
    return fromJsonSchema(source, limits);
  } catch (error) {
    throw what !== undefined && error instanceof SchemaError ? withSubject(error, what) : error;
  }
}

/** The error with the name of the schema in front. */
function withSubject(error: SchemaError, what: string): SchemaError {
  const { code, message, path, limit, cause } = error;
  return new SchemaError(code, `${what}: ${message}`, {
    ...(path === undefined ? {} : { path }),
    ...(limit === undefined ? {} : { limit }),
    cause,
  });
}

/** A plain object of schemas is no schema: as a JSON Schema it would allow everything. */
function assertNoRawShape(source: JsonSchema, what: string): void {
  const found = findLibrarySchema(source);
  if (found === undefined) return;
  const [keys, { vendor }] = found;
  const wrap = wrappers[vendor] ?? "the library's own object({ … })";
  const fault =
    keys.length === 1
      ? `is a plain object whose member ${JSON.stringify(keys[0])} is a ${vendor} schema. Wrap it: ${wrap}.`
      : `is a JSON Schema that holds a ${vendor} schema at ${toPointer(keys)}. ` +
        `Write all of it with ${vendor}, ${wrap}, or all of it as JSON.`;
  throw new SchemaError("schema.invalid", `${what} ${fault}`);
}

/** More values than people write by hand; a larger schema was made by a program. */
const maxLookedAt = 10_000;

/** The first schema of a library inside a document, and the keys that lead to it. */
function findLibrarySchema(
  source: unknown,
): readonly [keys: readonly string[], schema: StandardSchemaV1.Props] | undefined {
  const open: (readonly [readonly string[], unknown])[] = [[[], source]];
  for (let index = 0; index < open.length && index < maxLookedAt; index += 1) {
    const [keys, value] = open[index] ?? [[], undefined];
    // JSON has no functions, so a property that is called "~standard" is not taken for one.
    if (isStandardSchema(value) && typeof value["~standard"]?.validate === "function")
      return [keys, value["~standard"]];
    if (typeof value !== "object" || value === null) continue;
    for (const [key, member] of Object.entries(value)) open.push([[...keys, key], member]);
  }
  return undefined;
}

/** How libraries make a schema from a plain object of schemas. */
const wrappers: { readonly [vendor: string]: string } = {
  zod: "z.object({ … })",
  valibot: "toStandardJsonSchema(v.object({ … }))",
  arktype: "type({ … })",
};

/**
 * The schema with `type: "object"` at its root, which the protocol wants of every `inputSchema`. A union of objects gets
 * it beside its alternatives, where it changes nothing.
 *
 * @throws {@link SchemaError} `schema.not_object`, naming `what` (such as `Tool "weather": input`).
 */
export function toObjectRoot(schema: Schema, what: string): Schema {
  const { json } = schema;
  const { type } = json;
  if (type === "object") return schema;
  if (type === undefined && takesObjectsOnly(json))
    return { json: { type: "object", ...json }, check: (value) => schema.check(value) };
  const found = type === undefined ? "no type" : `type ${JSON.stringify(type)}`;
  throw new SchemaError(
    "schema.not_object",
    `${what} must be a schema with type "object" at its root, but has ${found}. ` +
      'Wrap it in an object with a name for the value: z.object({ value: … }), or { type: "object", properties: … }.',
  );
}

function takesObjectsOnly(json: unknown): boolean {
  if (typeof json !== "object" || json === null) return false;
  const { type, anyOf, oneOf, allOf } = json as JsonSchema;
  if (type !== undefined) return type === "object";
  const areObjects = [anyOf, oneOf].some(
    (parts) => Array.isArray(parts) && parts.length > 0 && parts.every(takesObjectsOnly),
  );
  return areObjects || (Array.isArray(allOf) && allOf.some(takesObjectsOnly));
}

function isStandardSchema(source: unknown): source is StandardSchemaV1 {
  // arktype's schemas are functions.
  return (
    (typeof source === "object" || typeof source === "function") && source !== null && "~standard" in source
  );
}
