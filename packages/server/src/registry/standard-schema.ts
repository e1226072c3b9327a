import { andThen, settled } from "@junctor/core/async";
import { SchemaError } from "@junctor/core/errors";
import {
  guard,
  inspectJsonSchema,
  type Issue,
  maxIssues,
  toPointer,
  type Checked,
  type JsonSchema,
  type Schema,
  type SchemaLimits,
} from "@junctor/core/schema";
import type { StandardJSONSchemaV1, StandardSchemaV1 } from "@standard-schema/spec";

/**
 * Gives a Standard Schema the JSON Schema to list for it, for libraries that cannot say it themselves or say it wrong.
 * Values are still checked by the library.
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
 * A schema checked by the library it was written with. Its JSON Schema is made once, here. A check has a time limit where that JSON Schema
 * shows a pattern or the like; code inside the schema (`refine`, `transform`) is the author's own, like a handler.
 *
 * @throws {@link SchemaError} `schema.no_json_schema` when the library cannot convert it; other codes when what it
 * converts to breaks a limit.
 */
export function fromStandardSchema(
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

/** What zod converts a schema to, and the parts of a schema that tell whether it coerces. Only what is used here. */
interface Conversion {
  readonly zodSchema: {
    readonly _zod?: { readonly def?: { readonly type?: string; readonly coerce?: boolean } };
  };
  readonly jsonSchema: { type?: unknown };
}

/**
 * The JSON types that `z.coerce` takes beside its own. zod lists its own alone, so that callers who heed the list could
 * not send what the tool takes. `null` and arrays are left out: that they become 0 or "" is not what callers mean.
 */
const takenBeside: { readonly [type: string]: readonly string[] } = {
  number: ["string"],
  string: ["number", "boolean"],
  boolean: ["string", "number"],
};

/** Those without a JSON type of their own, which zod refuses to list. */
const takenInstead: { readonly [type: string]: readonly string[] } = {
  bigint: ["integer", "string"],
  date: ["string", "number"],
};

/**
 * Converts the input side of a zod schema such that coerced parts list every type they take. `convert` runs zod's own
 * conversion with the given options; it throws for what has no JSON Schema.
 */
export function convertCoercing<Json>(convert: (libraryOptions: Record<string, unknown>) => Json): Json {
  const override = ({ zodSchema, jsonSchema }: Conversion): void => {
    const beside = takenBeside[coercedType(zodSchema) ?? ""];
    if (beside !== undefined && typeof jsonSchema.type === "string")
      jsonSchema.type = [jsonSchema.type, ...beside];
  };
  try {
    return convert({ override });
  } catch (error) {
    // Versions of zod that know no function here would list every such part as anything: then the error stands.
    let isAsked = false;
    const unrepresentable = ({ zodSchema }: Pick<Conversion, "zodSchema">): object | "throw" => {
      isAsked = true;
      const type = takenInstead[coercedType(zodSchema) ?? ""];
      return type === undefined ? "throw" : { type };
    };
    const json = convert({ override, unrepresentable });
    if (!isAsked) throw error;
    return json;
  }
}

function coercedType({ _zod }: Conversion["zodSchema"]): string | undefined {
  return _zod?.def?.coerce === true ? _zod.def.type : undefined;
}
