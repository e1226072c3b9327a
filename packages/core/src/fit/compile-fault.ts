import { projectTool, type Tool } from "../mcp/index.ts";
import {
  dialectOf,
  compileAsSdk,
  clip,
  surveySchema,
  type JsonSchema,
  defaultSchemaLimits,
} from "../schema/index.ts";
import { type Fields, isFields } from "./check.ts";

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
 * Why clients cannot compile a tool's output schema; undefined when they can. The official SDK v1 compiles the schemas of
 * a whole list with ajv and gives the list up when one fails; v2 refuses each call of such a tool.
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
 * Whether a schema uses only the keywords nearly all schemas consist of, each with a value that every validator compiles in
 * every dialect. Looking takes microseconds where compiling takes up to half a second. `false` says nothing.
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

/** `#/$defs/Name`, which is what generators write, and there is such a name. One that refers to itself makes ajv run in circles. */
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
