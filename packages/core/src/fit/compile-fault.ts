import { projectTool, type Tool } from "../mcp/index.ts";
import {
  dialectOf,
  compileAsSdk,
  clip,
  surveySchema,
  type JsonSchema,
  defaultSchemaLimits,
  describeValue,
} from "../schema/index.ts";

/** How long compiling one schema may take. Clients would need as long, for each list. */
const maxCompileMs = 2000;

/** How long the schemas of one list may take together. One server's schemas must not keep the others waiting. */
export const maxListMs = 5000;

/** Results by the hash of the schema: servers are listed again and again. */
const known = new Map<string, string | undefined>();
const maxKnown = 2000;

/** Time that may be spent, shared by the schemas of one list. */
export interface Budget {
  leftMs: number;
}

/**
 * Why clients cannot compile a tool's output schema; undefined when they can. The official SDK v1
 * compiles the schemas of a whole list with ajv and drops the whole list when one fails; v2 refuses
 * each call of such a tool.
 */
export async function findCompileFault(tool: Tool, budget: Budget): Promise<string | undefined> {
  const { outputSchema } = tool;
  if (outputSchema === undefined || isPlainSchema(outputSchema)) return undefined;
  const key = process
    .getBuiltinModule("node:crypto")
    .createHash("sha256")
    .update(JSON.stringify(outputSchema))
    .digest("base64");
  if (known.has(key)) return known.get(key);
  if (budget.leftMs <= 0) return "the output schemas of this server take too long to compile";
  const startedAt = performance.now();
  const fault = await compileAll(tool, outputSchema);
  budget.leftMs -= performance.now() - startedAt;
  if (known.size >= maxKnown) known.clear();
  known.set(key, fault);
  // Other work of this process gets its turn between two schemas.
  await new Promise((resolve) => setImmediate(resolve));
  return fault;
}

/** Compiles the schema as the clients do: v1 with draft-07, v2 with the dialect it declares, in the form each is sent. */
async function compileAll(tool: Tool, outputSchema: JsonSchema): Promise<string | undefined> {
  try {
    surveySchema(outputSchema, defaultSchemaLimits);
    const dialect = dialectOf(outputSchema);
    const legacy = projectTool(tool, "2025-11-25").outputSchema ?? outputSchema;
    await compileAsSdk("draft-07", legacy, maxCompileMs);
    if (dialect !== "draft-07") await compileAsSdk(dialect, legacy, maxCompileMs);
    if (legacy !== outputSchema) await compileAsSdk(dialect, outputSchema, maxCompileMs);
    return undefined;
  } catch (error) {
    return error instanceof Error ? clip(error.message, 200) : String(error);
  }
}

/**
 * Whether a schema uses only the keywords nearly all schemas consist of, each with a value that every
 * validator compiles in every dialect. This check takes microseconds; compiling takes up to half a second.
 * `false` only means that the schema must be compiled.
 */
export function isPlainSchema(root: unknown): boolean {
  if (!isFields(root)) return false;
  let references = 0;

  const isPlain = (schema: unknown): boolean => {
    if (typeof schema === "boolean") return true;
    if (!isFields(schema)) return false;
    return Object.entries(schema).every(([keyword, value]) => {
      if (keyword === "$ref") {
        references++;
        return isResolved(value, root);
      }
      if (oneSchema.has(keyword)) return isPlain(value);
      if (schemaLists.has(keyword)) return Array.isArray(value) && value.length > 0 && value.every(isPlain);
      if (namedSchemas.has(keyword)) return isFields(value) && Object.values(value).every(isPlain);
      return Object.hasOwn(values, keyword) && values[keyword]?.(value) === true;
    });
  };

  // Validators may copy a definition to each place that refers to it.
  return isPlain(root) && (references === 0 || references * JSON.stringify(root).length <= maxCopied);
}

const maxCopied = 4_000_000;

const oneSchema = new Set(["additionalProperties", "items", "propertyNames", "not"]);
const schemaLists = new Set(["anyOf", "oneOf", "allOf", "prefixItems"]);
const namedSchemas = new Set(["properties", "$defs", "definitions"]);

/**
 * Whether a reference is `#/$defs/Name`, as generators write it, and the name exists. A definition that
 * refers to itself makes ajv run in circles.
 */
function isResolved(ref: unknown, root: Fields): boolean {
  const [, section = "", name = ""] = /^#\/(\$defs|definitions)\/([\w.-]+)$/.exec(String(ref)) ?? [];
  const named = root[section];
  if (!isFields(named) || !Object.hasOwn(named, name)) return false;
  const target = named[name];
  return !isFields(target) || !Object.hasOwn(target, "$ref");
}

const types = new Set<unknown>(["object", "array", "string", "number", "integer", "boolean", "null"]);

const isAnything = (): boolean => true;
const isText = (value: unknown): boolean => typeof value === "string";
const isNumber = (value: unknown): boolean => typeof value === "number" && Number.isFinite(value);
const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0;
const isSet = (value: unknown): value is readonly unknown[] =>
  Array.isArray(value) && new Set(value).size === value.length;

const dialect = /^https?:\/\/json-schema\.org\/(draft\/2020-12|draft\/2019-09|draft-07)\/schema#?$/;

function isPattern(value: unknown): boolean {
  if (typeof value !== "string" || value.length > 1000) return false;
  try {
    return new RegExp(value, "u").source !== "";
  } catch {
    return false;
  }
}

/** Keywords that hold no schemas. */
const values: { readonly [keyword: string]: (value: unknown) => boolean } = {
  $schema: (value) => typeof value === "string" && dialect.test(value),
  type: (value) =>
    types.has(value) || (isSet(value) && value.length > 0 && value.every((each) => types.has(each))),
  required: (value) => isSet(value) && value.every(isText),
  enum: (value) => Array.isArray(value) && value.length > 0,
  const: isAnything,
  default: isAnything,
  examples: isAnything,
  title: isText,
  description: isText,
  format: isText,
  pattern: isPattern,
  minimum: isNumber,
  maximum: isNumber,
  exclusiveMinimum: isNumber,
  exclusiveMaximum: isNumber,
  minLength: isCount,
  maxLength: isCount,
  minItems: isCount,
  maxItems: isCount,
};

/** What was changed at one place of a definition, and why. */
export interface Note {
  /** Its path, such as `annotations.readOnlyHint`. */
  readonly path: string;
  readonly text: string;
}

/** What a value becomes because clients would refuse it. */
export interface Mending {
  /** The value it gets; undefined when it is removed. */
  readonly instead: unknown;
  readonly notes: readonly Note[];
}

/** Looks at one value of a definition; undefined when it can stay as it is. */
export type Check = (value: unknown) => Mending | undefined;

export type Checks = { readonly [member: string]: Check };

export type Fields = { readonly [member: string]: unknown };

/** The value is removed. */
export function removed(value: unknown, expected: string): Mending {
  return {
    instead: undefined,
    notes: [{ path: "", text: `removed: ${describeValue(value)} is ${expected}` }],
  };
}

/** The value is replaced by another that says the same. */
export function replaced(instead: unknown, text: string): Mending {
  return { instead, notes: [{ path: "", text }] };
}

/** "missing", or the kind that the value has in place of the expected one. */
export function describeWrong(value: unknown, expected: string): string {
  return value === undefined ? "missing" : `${describeValue(value)}, not ${expected}`;
}

export function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export const string: Check = (value) =>
  typeof value === "string" ? undefined : removed(value, "not a string");

export const boolean: Check = (value) =>
  typeof value === "boolean" ? undefined : removed(value, "not a boolean");

export const object: Check = (value) => (isFields(value) ? undefined : removed(value, "not an object"));

export function oneOf(...values: readonly string[]): Check {
  return (value) =>
    values.some((each) => each === value) ? undefined : removed(value, `not one of ${values.join(", ")}`);
}

/** An object that must have some string members, and whose other members are mended one by one. */
export function objectOf(checks: Checks, ...required: readonly string[]): Check {
  return (value) => {
    if (!isFields(value)) return removed(value, "not an object");
    const missing = required.find((member) => typeof value[member] !== "string");
    if (missing !== undefined)
      return {
        instead: undefined,
        notes: [
          { path: "", text: `removed: its ${missing} is ${describeWrong(value[missing], "a string")}` },
        ],
      };
    const { changes, notes } = checkMembers(value, checks);
    return notes.length === 0 ? undefined : { instead: withChanges(value, changes), notes };
  };
}

/** An array whose entries are mended one by one; entries that cannot be mended are taken out. */
export function arrayOf(check: Check): Check {
  return (value) => {
    if (!Array.isArray(value)) return removed(value, "not an array");
    const notes: Note[] = [];
    const kept = value.flatMap((entry: unknown, index) => {
      const mending = check(entry);
      if (mending === undefined) return [entry];
      notes.push(...within(`[${index}]`, mending));
      return mending.instead === undefined ? [] : [mending.instead];
    });
    return notes.length === 0 ? undefined : { instead: kept, notes };
  };
}

/** What has to change in an object: new values of members, undefined for those that are removed. */
export function checkMembers(
  fields: Fields,
  checks: Checks,
): { readonly changes: Fields; readonly notes: readonly Note[] } {
  const changes: [string, unknown][] = [];
  const notes: Note[] = [];
  for (const [member, check] of Object.entries(checks)) {
    if (!Object.hasOwn(fields, member)) continue;
    const mending = check(fields[member]);
    if (mending === undefined) continue;
    changes.push([member, mending.instead]);
    notes.push(...within(member, mending));
  }
  return { changes: Object.fromEntries(changes), notes };
}

/** The object with other members; `fromEntries` defines them, so that `__proto__` is a member like any other. */
export function withChanges(fields: Fields, changes: Fields): Fields {
  const merged = Object.entries({ ...fields, ...changes });
  return Object.fromEntries(merged.filter(([, value]) => value !== undefined));
}

function within(place: string, { notes }: Mending): readonly Note[] {
  return notes.map(({ path, text }) => {
    const isDotted = path !== "" && !path.startsWith("[");
    return { path: `${place}${isDotted ? "." : ""}${path}`, text };
  });
}
