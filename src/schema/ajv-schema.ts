import { SchemaError } from "../errors/schema-error.ts";
import { compileSchema } from "./compile-schema.ts";
import { type Dialect, dialectOf, type Engine, loadEngine, loadedEngine } from "./dialect.ts";
import { describeValue } from "./issue.ts";
import type { Checked, JsonSchema, Schema } from "./json-schema.ts";
import type { SchemaLimits } from "./limits.ts";
import { checkRefs } from "./refs.ts";
import { surveySchema } from "./survey.ts";

/** What is known of a JSON Schema before it is compiled. */
export interface Inspected {
  readonly dialect: Dialect;
  readonly isLinear: boolean;
}

/**
 * The cheap part of checking a schema, done at registration: dialect, limits and references.
 *
 * @throws {@link SchemaError}
 */
export function inspectJsonSchema(json: JsonSchema, limits: SchemaLimits): Inspected {
  if (typeof json !== "object" || json === null || Array.isArray(json)) {
    throw new SchemaError("schema.invalid", `A schema must be an object, but is ${describeValue(json)}.`);
  }
  const dialect = dialectOf(json);
  const { subschemas, isLinear } = surveySchema(json, limits);
  checkRefs(subschemas);
  return { dialect, isLinear };
}

/**
 * A schema checked with ajv, compiled at its first check and never again: a schema that does not compile keeps failing
 * with the same error.
 */
export function fromJsonSchema(json: JsonSchema, limits: SchemaLimits): Schema {
  const { dialect, isLinear } = inspectJsonSchema(json, limits);
  const maxCheckMs = isLinear ? Number.POSITIVE_INFINITY : limits.maxCheckMs;
  let compiled: ((value: unknown) => Checked) | undefined;
  /** The same, from when on no check has to wait for the engine. */
  let check: typeof compiled;

  const compileWith = (engine: Engine): ((value: unknown) => Checked) => {
    if (compiled !== undefined) return compiled;
    try {
      compiled = compileSchema(json, engine, maxCheckMs);
    } catch (error) {
      compiled = () => {
        throw error;
      };
    }
    return compiled;
  };

  return {
    json,
    check(value) {
      if (check !== undefined) return check(value);
      const engine = loadedEngine(dialect);
      if (engine === undefined) return loadEngine(dialect).then((loaded) => compileWith(loaded)(value));
      check = compileWith(engine);
      return check(value);
    },
  };
}
