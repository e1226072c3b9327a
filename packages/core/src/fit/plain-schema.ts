import { type Fields, isFields } from "./check.ts";

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
