import type { ErrorObject, ValidateFunction } from "ajv";
import { SchemaError } from "../errors/schema-error.ts";
import { toIssues } from "./ajv-issues.ts";
import type { Engine } from "./dialect.ts";
import type { Checked, JsonSchema } from "./json-schema.ts";
import { type Position, positionOf } from "./position.ts";
import { refError } from "./refs.ts";
import { ExhaustedError, withinTime } from "./time-box.ts";

/** How long compiling one schema may block the process. An object of 1,600 properties takes a tenth of it. */
const maxCompileMs = 2_000;

/** Beyond this many values, only the first issue is reported: gathering all of a huge array's would cost a GB. */
const maxValuesForAllIssues = 2_000;

/**
 * Compiles a schema to a function that checks values.
 *
 * @throws {@link SchemaError} `schema.invalid` or `schema.ref`; the function throws `schema.exhausted`.
 */
export function compileSchema(
  json: JsonSchema,
  engine: Engine,
  maxCheckMs: number,
): (value: unknown) => Checked {
  const document = withoutAjvExtensions(json, "schema") as JsonSchema;
  const fault = guard(maxCompileMs, () => engine.findFault(document));
  if (fault !== undefined) throw new SchemaError("schema.invalid", `The schema is invalid: ${fault}.`);
  const validate = compile(document, engine, false);
  let validateAll: ValidateFunction | undefined;

  return (value) => {
    if (guard(maxCheckMs, () => validate(value))) return { ok: true, value };
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

function guard<T>(limitMs: number, run: () => T): T {
  try {
    return withinTime(limitMs, run);
  } catch (cause) {
    if (!(cause instanceof ExhaustedError)) throw cause;
    throw new SchemaError("schema.exhausted", `Checking with the schema ${cause.message}.`, {
      limit: limitMs,
      cause,
    });
  }
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
