import type { ErrorObject, ValidateFunction, Ajv, Options } from "ajv";
import type { RegExpEngine, RegExpLike } from "ajv/dist/types/index.js";
import { SchemaError } from "../errors/index.ts";
import { type Dialect, dialectOf, metaSchemas } from "./dialect.ts";
import { type Position, positionOf, surveySchema, type Subschema } from "./survey.ts";
import { ExhaustedError, toExhausted, withinTime } from "./time-box.ts";
import {
  describeValue,
  clip,
  type Issue,
  maxIssues,
  type Checked,
  type JsonSchema,
  type Schema,
  type SchemaLimits,
} from "./types.ts";

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
  /** The same, set once no check has to wait for the engine. */
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

/** Runs a check, or compiles one, for at most this long. Throws a {@link SchemaError} `schema.exhausted`. */
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

/** Describes in our words which fault ajv found: the place, the expected value and the value that came. */
function toIssues(errors: readonly ErrorObject[], value: unknown): readonly Issue[] {
  const issues = new Map<string, Issue>();
  for (const error of errors) {
    const message = toMessage(error, value);
    // The branches of an anyOf often say the same.
    issues.set(`${error.instancePath}\n${message}`, { path: error.instancePath, message });
    if (issues.size === maxIssues) break;
  }
  return [...issues.values()];
}

function toMessage(error: ErrorObject, root: unknown): string {
  const params: Record<string, unknown> = error.params;
  const text = error.message ?? `must satisfy "${error.keyword}"`;
  switch (error.keyword) {
    case "required":
    case "dependentRequired":
    case "dependencies":
    case "false schema":
      return text;
    case "additionalProperties":
      return `must not have property ${quote(params["additionalProperty"])}`;
    case "unevaluatedProperties":
      return `must not have property ${quote(params["unevaluatedProperty"])}`;
    case "propertyNames":
      return `must not have property ${quote(params["propertyName"])}: the name is invalid`;
    case "enum":
      return `must be one of ${listOf(params["allowedValues"])}${describeActual(error, root)}`;
    case "const":
      return `must be ${quote(params["allowedValue"])}${describeActual(error, root)}`;
    default:
      return `${text}${describeActual(error, root)}`;
  }
}

function listOf(values: unknown): string {
  return Array.isArray(values) ? clip(values.slice(0, 50).map(quote).join(", "), 200) : "the listed values";
}

function quote(value: unknown): string {
  return clip(JSON.stringify(value) ?? "undefined", 60);
}

function describeActual(error: ErrorObject, root: unknown): string {
  let value = root;
  for (const token of error.instancePath.split("/").slice(1)) {
    const key = token.replaceAll("~1", "/").replaceAll("~0", "~");
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return "";
    value = (value as Record<string, unknown>)[key];
  }
  return ` (got ${describeValue(value)})`;
}

/** Checks schemas of one dialect. */
interface Engine {
  /** Why a document is not a schema of this dialect, or undefined when it is one. */
  findFault(schema: JsonSchema): string | undefined;
  /**
   * A compiler that has seen no other schema. They cannot share one: an instance of ajv keeps every function it
   * compiled for good, even after `removeSchema`, and two tools with the same `$id` would collide in it. A new one
   * without meta-schemas takes 0.1 ms and is garbage once its one schema is compiled.
   */
  createCompiler(options: { readonly allErrors: boolean }): Ajv;
}

const loading = new Map<Dialect, Promise<Engine>>();
const loaded = new Map<Dialect, Engine>();

/** The engine of a dialect if it is loaded, and every check that waited for it has continued. */
function loadedEngine(dialect: Dialect): Engine | undefined {
  return loaded.get(dialect);
}

/**
 * Loads the engine of a dialect, once. ajv takes 40 ms to load and another 40 to compile its own meta-schema, which a
 * program that checks no JSON Schema should not pay for at startup.
 *
 * Checks that wait for the engine continue in the order they came. `loadedEngine` returns the engine only in
 * a later turn of the event loop, because a check that need not wait would overtake those that still do, and
 * its tool would begin before theirs. (In Node 22 and later an import settles without a turn of the event
 * loop, so calls of one chunk of input are on both sides of it.)
 */
function loadEngine(dialect: Dialect): Promise<Engine> {
  let engine = loading.get(dialect);
  if (engine === undefined) {
    engine = createEngine(dialect);
    loading.set(dialect, engine);
    engine.then(
      (created) => setTimeout(() => loaded.set(dialect, created), 0),
      // The next check tries again.
      () => loading.delete(dialect),
    );
  }
  return engine;
}

async function createEngine(dialect: Dialect): Promise<Engine> {
  const { ajvOf, addFormats } = await import("./ajv.ts");
  const AjvClass = ajvOf[dialect];
  const meta = new AjvClass({ strict: false, logger: false });
  addFormats(meta);
  const metaSchema = metaSchemas[dialect];
  // Compiles the meta-schema now, so that no later time limit can interrupt it half-way.
  meta.validate(metaSchema, {});

  return {
    findFault(schema) {
      if (meta.validate(metaSchema, schema)) return undefined;
      const fault = meta.errors?.[0];
      meta.errors = null;
      return `${fault?.instancePath || "/"} ${fault?.message ?? "is not valid"}`;
    },
    createCompiler: ({ allErrors }) => new AjvClass({ ...compilerOptions, formats: meta.formats, allErrors }),
  };
}

/** Tries a pattern as Unicode, as the specification wants, then as the older syntax that escapes like `\_` need. */
const toRegExp: RegExpEngine = Object.assign(
  (pattern: string, flags: string): RegExpLike => {
    try {
      return new RegExp(pattern, flags);
    } catch {
      return new RegExp(pattern);
    }
  },
  { code: "new RegExp" },
);

const compilerOptions: Options = {
  // The document was checked against its meta-schema by the shared instance.
  meta: false,
  validateSchema: false,
  // Unknown keywords and formats are fine, as the specification says.
  strict: false,
  logger: false,
  // `required: ["toString"]` must not be satisfied by what every object inherits.
  ownProperties: true,
  // Inlining would copy a large definition into every place that refers to it: megabytes of code from a small schema.
  inlineRefs: false,
  // The optimizer takes time that grows with the square of the number of properties, and gains nothing measurable.
  code: { regExp: toRegExp, optimize: false },
};

// A base for documents without an `$id`, or with a relative one. Nothing is ever fetched from it.
const namelessBase = "schema:///";

const refKeywords = ["$ref", "$dynamicRef", "$recursiveRef"];

/**
 * Makes sure that every reference leads to a place in the same document, by pointer, `$id` or anchor (JSON Schema
 * 2020-12 core, section 8.2). MCP 2026-07-28 forbids fetching, and an unresolved reference must not mean "accept all".
 *
 * @throws {@link SchemaError} `schema.ref`.
 */
function checkRefs(subschemas: readonly Subschema[]): void {
  const bases = new Map<Subschema, string>();
  const resources = new Map<string, unknown>();
  const anchors = new Set<string>();

  for (const subschema of subschemas) {
    const { node, parent } = subschema;
    const outer = parent === undefined ? namelessBase : (bases.get(parent) ?? namelessBase);
    let base = outer;
    const id = node["$id"];
    if (typeof id === "string") {
      // Up to draft-07, `"$id": "#name"` is how an anchor is written.
      if (id.startsWith("#") && id.length > 1) anchors.add(`${outer}${id}`);
      else base = resolveUrl(id, outer)?.[0] ?? outer;
    }
    bases.set(subschema, base);
    if (parent === undefined || base !== outer) resources.set(base, node);
    for (const keyword of ["$anchor", "$dynamicAnchor"]) {
      const name = node[keyword];
      if (typeof name === "string") anchors.add(`${base}#${name}`);
    }
  }

  for (const subschema of subschemas) {
    for (const keyword of refKeywords) {
      const ref = subschema.node[keyword];
      // `$ref` is also a fine name for an unknown keyword's data; the compiler refuses a `$ref` that is not a string.
      if (typeof ref !== "string") continue;
      const [document, fragment] = resolveUrl(ref, bases.get(subschema) ?? namelessBase) ?? ["", ""];
      const isFound =
        resources.has(document) &&
        (fragment === "" || fragment.startsWith("/")
          ? pointsToSomething(resources.get(document), fragment)
          : anchors.has(`${document}#${fragment}`));
      if (!isFound) throw refError(keyword, ref, subschema.path);
    }
  }
}

/** The error for a reference that leads nowhere in the document. */
function refError(keyword: string, ref: string, path: string, cause?: unknown): SchemaError {
  return new SchemaError(
    "schema.ref",
    `The schema's ${keyword} ${JSON.stringify(clip(ref, 200))} at ${path || "/"} leads to nothing in the same document. ` +
      `References are never fetched: put what it names under "$defs".`,
    { path, cause },
  );
}

/** The absolute address without its fragment, and the fragment, decoded. */
function resolveUrl(
  reference: string,
  base: string,
): readonly [document: string, fragment: string] | undefined {
  if (!URL.canParse(reference, base)) return undefined;
  const url = new URL(reference, base);
  const fragment = url.hash.slice(1);
  url.hash = "";
  try {
    return [url.href, decodeURIComponent(fragment)];
  } catch {
    return undefined;
  }
}

function pointsToSomething(root: unknown, pointer: string): boolean {
  let node = root;
  for (const token of pointer.split("/").slice(1)) {
    const key = token.replaceAll("~1", "/").replaceAll("~0", "~");
    if (typeof node !== "object" || node === null || !Object.hasOwn(node, key)) return false;
    node = (node as Record<string, unknown>)[key];
  }
  return (typeof node === "object" && node !== null) || typeof node === "boolean";
}

/** Compiles a schema as both official SDKs would. Rejects if they could not, and after `maxMs`. */
export async function compileAsSdk(dialect: Dialect, schema: JsonSchema, maxMs: number): Promise<void> {
  const { ajvOf, addFormats } = await import("./ajv.ts");
  withinTime(maxMs, () => {
    const ajv = new ajvOf[dialect]({ strict: false, validateSchema: false, allErrors: true, logger: false });
    addFormats(ajv);
    ajv.compile(schema);
  });
}
