import type { ErrorObject, ValidateFunction } from "ajv";
import { SchemaError } from "../errors/index.ts";
import { toIssues } from "./ajv-issues.ts";
import { type Dialect, dialectOf } from "./dialect.ts";
import { type Engine, loadEngine, loadedEngine } from "./engine.ts";
import { describeValue } from "./issue.ts";
import { checkRefs, refError } from "./refs.ts";
import { type Position, positionOf, surveySchema } from "./survey.ts";
import { ExhaustedError, toExhausted, withinTime } from "./time-box.ts";
import type { Checked, JsonSchema, Schema, SchemaLimits } from "./types.ts";

/** What is known of a JSON Schema before it is compiled. */
interface Inspected {
  readonly dialect: Dialect;
  /** Time for one check; `Infinity` where the time to check a value grows no faster than the value. */
  readonly maxCheckMs: number;
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
  return { dialect, maxCheckMs: isLinear ? Number.POSITIVE_INFINITY : limits.maxCheckMs };
}

/**
 * A schema checked with ajv, compiled at its first check and never again: a schema that does not compile keeps failing
 * with the same error.
 */
export function fromJsonSchema(json: JsonSchema, limits: SchemaLimits): Schema {
  const { dialect, maxCheckMs } = inspectJsonSchema(json, limits);
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

/** How long compiling one schema may block the process. An object of 1,600 properties takes a tenth of it. */
const maxCompileMs = 2_000;

/** Beyond this many values, only the first issue is reported: gathering all of a huge array's would cost a GB. */
const maxValuesForAllIssues = 2_000;

/**
 * Compiles a schema to a function that checks values.
 *
 * @throws {@link SchemaError} `schema.invalid` or `schema.ref`; the function throws `schema.exhausted`.
 */
function compileSchema(json: JsonSchema, engine: Engine, maxCheckMs: number): (value: unknown) => Checked {
  const document = withoutAjvExtensions(json, "schema") as JsonSchema;
  const fault = guard(maxCompileMs, () => engine.findFault(document));
  if (fault !== undefined) throw new SchemaError("schema.invalid", `The schema is invalid: ${fault}.`);
  const validate = compile(document, engine, false);
  let validateAll: ValidateFunction | undefined;
  const isValid = (value: unknown): boolean =>
    maxCheckMs === Infinity ? validate(value) : withinTime(maxCheckMs, () => validate(value));

  return (value) => {
    try {
      if (isValid(value)) return { ok: true, value };
    } catch (cause) {
      throw toSchemaError(cause, maxCheckMs);
    }
    const errors = takeErrors(validate);
    if (!isSmall(value)) return { ok: false, issues: toIssues(errors, value) };
    try {
      validateAll ??= compile(document, engine, true);
      const every = validateAll;
      withinTime(maxCheckMs, () => every(value));
      return { ok: false, issues: toIssues(takeErrors(every), value) };
    } catch (error) {
      if (!(error instanceof ExhaustedError || error instanceof SchemaError)) throw error;
      return { ok: false, issues: toIssues(errors, value) };
    }
  };
}

function compile(document: JsonSchema, engine: Engine, allErrors: boolean): ValidateFunction {
  try {
    return guard(maxCompileMs, () => engine.createCompiler({ allErrors }).compile(document));
  } catch (cause) {
    if (cause instanceof SchemaError) throw cause;
    if (cause instanceof Error && "missingRef" in cause)
      throw refError("reference", String(cause.missingRef), "", cause);
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new SchemaError("schema.invalid", `The schema is invalid: ${reason}.`, { cause });
  }
}

/** Runs a check, or the making of one, for at most so long. Throws a {@link SchemaError} `schema.exhausted`. */
export function guard<T>(limitMs: number, run: () => T): T {
  try {
    return withinTime(limitMs, run);
  } catch (cause) {
    throw toSchemaError(cause, limitMs);
  }
}

/** The error for a check that ran out of time or stack; any other error as it is. */
function toSchemaError(thrown: unknown, limitMs: number): unknown {
  const cause = toExhausted(thrown, limitMs);
  if (cause === undefined) return thrown;
  return new SchemaError("schema.exhausted", `Checking with the schema ${cause.message}.`, {
    limit: limitMs,
    cause,
  });
}

function takeErrors(validate: ValidateFunction): readonly ErrorObject[] {
  const errors = validate.errors ?? [];
  validate.errors = null;
  return errors;
}

/**
 * A copy without the keywords that only ajv knows and that it refuses, or worse, obeys: a root `$async` would make the
 * verdict a promise, which is truthy; `id` throws; so does OpenAPI's `nullable` where there is no `type` beside it.
 */
function withoutAjvExtensions(value: unknown, position: Position): unknown {
  if (typeof value !== "object" || value === null || position === "data") return value;
  if (Array.isArray(value)) return value.map((item) => withoutAjvExtensions(item, position));
  const members = Object.entries(value).filter(([key, member]) => {
    if (position !== "schema") return true;
    if (key === "nullable") return member === true && Object.hasOwn(value, "type");
    return key !== "$async" && key !== "id";
  });
  return Object.fromEntries(
    members.map(([key, member]) => [key, withoutAjvExtensions(member, positionOf(position, key))]),
  );
}

function isSmall(value: unknown): boolean {
  const open: unknown[] = [value];
  for (let seen = 0; open.length > 0; seen += 1) {
    if (seen + open.length > maxValuesForAllIssues) return false;
    const next = open.pop();
    if (typeof next !== "object" || next === null) continue;
    const members: readonly unknown[] = Object.values(next);
    if (members.length > maxValuesForAllIssues) return false;
    open.push(...members);
  }
  return true;
}
