import { andThen, settled } from "@junctor/core/async";
import { SchemaError } from "@junctor/core/errors";
import {
  fromJsonSchema,
  toPointer,
  assertWellWritten,
  type JsonSchema,
  type Schema,
  type SchemaLimits,
  defaultSchemaLimits,
  guard,
  inspectJsonSchema,
  type Issue,
  maxIssues,
  type Checked,
} from "@junctor/core/schema";
import type { StandardSchemaV1, StandardJSONSchemaV1 } from "@standard-schema/spec";
import type { FromSchema } from "./from-schema.ts";

export type { Checked, JsonSchema, Schema } from "@junctor/core/schema";

/** The schema of a tool: a JSON Schema, or a schema of zod, valibot, arktype and other libraries. */
export type SchemaSource = JsonSchema | StandardSchemaV1;

/** What callers may send: the type before defaults and transforms. */
export type InferredInput<Source> = Source extends StandardSchemaV1
  ? StandardSchemaV1.InferInput<Source>
  : InferredJson<Source>;

/** What a handler gets: the type after defaults and transforms. */
export type InferredOutput<Source> = Source extends StandardSchemaV1
  ? StandardSchemaV1.InferOutput<Source>
  : InferredJson<Source>;

/** From the literal of a JSON Schema. A document that is known only at run time says nothing. */
type InferredJson<Source> = string extends keyof Source ? Record<string, unknown> : Known<FromSchema<Source>>;
type Known<Value> = unknown extends Value ? Record<string, unknown> : Value;

/** How {@link toSchema} converts, and which faults it accepts. */
interface SchemaOptions {
  /**
   * Which side of a Standard Schema to list: what goes in, or what comes out after transforms. Default `"input"`; use
   * `"output"` for a tool's `outputSchema`.
   */
  readonly side?: "input" | "output";
  readonly limits?: Partial<SchemaLimits>;
  /** Names a schema of our own in errors, such as `Tool "weather": input`. With it, mistakes that would be found only when the schema is compiled are errors at once. */
  readonly what?: string;
}

/**
 * Creates a schema that can be listed, and that checks values. Cheap: a JSON Schema is walked once for its dialect, its size and
 * its references, and compiled only when first needed, so one bad schema never spoils a list.
 *
 * @throws {@link SchemaError} when the dialect is unknown, a limit is exceeded, a reference leads nowhere, or a Standard
 * Schema cannot be converted to JSON Schema.
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

/** Refuses a plain object of schemas, which as a JSON Schema would allow everything. */
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

/** The most values that are searched: more than people write by hand. */
const maxSearched = 10_000;

/** The first schema of a library inside a document, and the keys that lead to it. */
function findLibrarySchema(
  source: unknown,
): readonly [keys: readonly string[], schema: StandardSchemaV1.Props] | undefined {
  const open: (readonly [readonly string[], unknown])[] = [[[], source]];
  for (let index = 0; index < open.length && index < maxSearched; index += 1) {
    const [keys, value] = open[index] ?? [[], undefined];
    // JSON has no functions, so a property that is called "~standard" is not taken for a schema of a library.
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
 * The schema with `type: "object"` at its root, which the protocol requires of every `inputSchema`. A union of objects gets it
 * beside its alternatives, where it changes nothing.
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

/**
 * Gives a Standard Schema the JSON Schema to list for it, for libraries that cannot convert it, or convert it wrongly. The
 * library still checks the values.
 *
 * @example
 * const input = withJsonSchema(v.object({ city: v.string() }), {
 *   type: "object",
 *   properties: { city: { type: "string" } },
 *   required: ["city"],
 * });
 */
export function withJsonSchema<Input, Output>(
  schema: StandardSchemaV1<Input, Output>,
  json: JsonSchema,
): StandardSchemaV1<Input, Output> & StandardJSONSchemaV1<Input, Output> {
  const { version, vendor, validate } = schema["~standard"];
  const convert = (): Record<string, unknown> => json;
  return { "~standard": { version, vendor, validate, jsonSchema: { input: convert, output: convert } } };
}

/**
 * A schema whose values its own library checks. Its JSON Schema is made once, here. A check has a time limit if that JSON Schema has a
 * pattern or another keyword that may take long. Code inside the schema (`refine`, `transform`) is the author's own, like a handler.
 *
 * @throws {@link SchemaError} `schema.no_json_schema` when the library cannot convert it; other codes when what it
 * converts to breaks a limit.
 */
function fromStandardSchema(
  source: StandardSchemaV1,
  side: "input" | "output",
  limits: SchemaLimits,
): Schema {
  const json = convert(source, side);
  const { maxCheckMs } = inspectJsonSchema(json, limits);
  const standard = source["~standard"];
  const validate = (value: unknown): ReturnType<typeof standard.validate> =>
    maxCheckMs === Infinity ? standard.validate(value) : guard(maxCheckMs, () => standard.validate(value));
  return { json, check: (value) => andThen(settled(validate(value)), toChecked) };
}

function convert(source: StandardSchemaV1, side: "input" | "output"): JsonSchema {
  const standard: StandardSchemaV1.Props & Partial<StandardJSONSchemaV1.Props> = source["~standard"];
  const { vendor, jsonSchema } = standard;
  if (jsonSchema === undefined) throw new SchemaError("schema.no_json_schema", howToConvert(vendor));
  try {
    const target = "draft-2020-12";
    if (vendor !== "zod" || side === "output") return jsonSchema[side]({ target });
    return convertCoercing((libraryOptions) => jsonSchema.input({ target, libraryOptions }));
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new SchemaError(
      "schema.no_json_schema",
      `The ${vendor} schema has no JSON Schema for its ${side}: ${reason}. ` +
        "Change the part it names, or give the JSON Schema yourself: withJsonSchema(schema, { … }).",
      { cause },
    );
  }
}

function howToConvert(vendor: string): string {
  const byHand = "withJsonSchema(schema, { … })";
  return vendor === "valibot"
    ? "A valibot schema cannot say its own JSON Schema. Install @valibot/to-json-schema (1.5 or later) and wrap it: " +
        'import { toStandardJsonSchema } from "@valibot/to-json-schema"; … toStandardJsonSchema(schema). ' +
        `Or give the JSON Schema yourself: ${byHand}.`
    : `This ${vendor} schema cannot say its own JSON Schema. Use a version of ${vendor} that implements Standard JSON ` +
        `Schema (zod 4.2, arktype 2.1.28 or later), or give the JSON Schema yourself: ${byHand}.`;
}

function toChecked(result: StandardSchemaV1.Result<unknown>): Checked {
  if (result.issues === undefined) return { ok: true, value: result.value };
  return { ok: false, issues: result.issues.slice(0, maxIssues).map(toIssue) };
}

function toIssue(issue: StandardSchemaV1.Issue): Issue {
  const keys = (issue.path ?? []).map((segment) => (typeof segment === "object" ? segment.key : segment));
  // arktype's messages repeat the path; its `problem` is the rest.
  const hasProblem = "problem" in issue && typeof issue.problem === "string";
  return { path: toPointer(keys), message: hasProblem ? String(issue.problem) : issue.message };
}

/** The parts of zod's conversion that are used here: the result, and whether the schema coerces. */
interface Conversion {
  readonly zodSchema: {
    readonly _zod?: { readonly def?: { readonly type?: string; readonly coerce?: boolean } };
  };
  readonly jsonSchema: { type?: unknown };
}

/**
 * The JSON types that `z.coerce` accepts besides its own. zod lists only its own, so callers that follow the list could not send
 * the others. `null` and arrays are left out: callers do not mean them as 0 or "".
 */
const typesBeside: { readonly [type: string]: readonly string[] } = {
  number: ["string"],
  string: ["number", "boolean"],
  boolean: ["string", "number"],
};

/** The JSON types of coerced types that have none of their own, which zod refuses to list. */
const typesInstead: { readonly [type: string]: readonly string[] } = {
  bigint: ["integer", "string"],
  date: ["string", "number"],
};

/**
 * Converts the input side of a zod schema so that coerced parts list every type they accept. `convert` runs zod's own conversion
 * with the given options, and throws if a part has no JSON Schema.
 */
export function convertCoercing<Json>(convert: (libraryOptions: Record<string, unknown>) => Json): Json {
  const override = ({ zodSchema, jsonSchema }: Conversion): void => {
    const beside = typesBeside[coercedType(zodSchema) ?? ""];
    if (beside !== undefined && typeof jsonSchema.type === "string")
      jsonSchema.type = [jsonSchema.type, ...beside];
  };
  try {
    return convert({ override });
  } catch (error) {
    // Older versions of zod take no function here, and would list every such part as anything. Then keep the error.
    let isCalled = false;
    const unrepresentable = ({ zodSchema }: Pick<Conversion, "zodSchema">): object | "throw" => {
      isCalled = true;
      const type = typesInstead[coercedType(zodSchema) ?? ""];
      return type === undefined ? "throw" : { type };
    };
    const json = convert({ override, unrepresentable });
    if (!isCalled) throw error;
    return json;
  }
}

function coercedType({ _zod }: Conversion["zodSchema"]): string | undefined {
  return _zod?.def?.coerce === true ? _zod.def.type : undefined;
}
