import type { JsonSchema } from "@junctor/core/schema";
import { type Documents, type Fields, isFields, type Located } from "./documents.ts";

/** Whether values go to the API or come from it: some members are for one way only. */
type Direction = "request" | "response";

interface Budget {
  /** Characters of all definitions together. */
  readonly schema: number;
  /** Characters of one description. */
  readonly description: number;
}

const budgets: { readonly [D in Direction]: Budget } = {
  request: { schema: 24 * 1024, description: 300 },
  response: { schema: 4 * 1024, description: 100 },
};

const maxDepth = 24;
const types = new Set(["string", "number", "integer", "boolean", "array", "object", "null"]);
/** The formats that validators agree on. */
const formats = new Set(["date", "date-time", "email", "ipv4", "ipv6", "uri", "uuid"]);
const numbers = ["minimum", "maximum", "multipleOf"] as const;
const counts = ["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"] as const;

/**
 * Writes schemas of a specification as JSON Schema. Schemas that are referred to become `$defs`, once each, so that one may contain
 * itself; beyond the budget they are left open. Those of responses are loose: they say which members there are, and require none.
 */
export class SchemaWriter {
  readonly #documents: Documents;
  readonly #direction: Direction;
  readonly #names = new Map<string, string>();
  readonly #waiting: (readonly [name: string, schema: Located])[] = [];
  #isCut = false;
  #left: number;

  constructor(documents: Documents, direction: Direction) {
    this.#documents = documents;
    this.#direction = direction;
    this.#left = budgets[direction].schema;
  }

  /** Whether something was left out for its size. */
  get isCut(): boolean {
    return this.#isCut;
  }

  /** One schema. Throws for a reference that leads nowhere. */
  write(schema: Located, depth = 0): JsonSchema {
    const { value, at } = schema;
    if (depth > maxDepth || !isFields(value)) return {};
    if (typeof value["$ref"] === "string") return this.#refer(schema, value["$ref"]);
    const written: { [keyword: string]: unknown } = {};
    this.#writeType(value, written);
    const { description } = value;
    if (typeof description === "string" && description.trim() !== "")
      written["description"] = shorten(description, budgets[this.#direction].description);
    const inner = (each: unknown): JsonSchema => this.write({ value: each, at }, depth + 1);
    if (isFields(value["properties"])) this.#writeProperties(value, value["properties"], written, inner);
    if (isFields(value["items"])) written["items"] = inner(value["items"]);
    else if (written["type"] === "array") written["items"] = {};
    if (this.#direction === "request") this.#writeRules(value, written, inner);
    if (value["nullable"] === true) return toNullable(written);
    return written;
  }

  /** The definitions that were referred to. */
  definitions(): { readonly [name: string]: JsonSchema } {
    const definitions: { [name: string]: JsonSchema } = {};
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      const [name, schema] = next;
      const waiting = this.#waiting.length;
      const written = this.#left > 0 ? this.write(schema) : {};
      const size = JSON.stringify(written).length;
      this.#left -= size;
      if (this.#left >= 0) definitions[name] = written;
      else {
        this.#isCut = true;
        definitions[name] = { description: "Any value: it is too long to be described here." };
        this.#forget(this.#waiting.splice(waiting));
      }
    }
    return definitions;
  }

  /** Only a definition that was left out referred to these so far. */
  #forget(unused: readonly (readonly [name: string, schema: Located])[]): void {
    const names = new Set(unused.map(([name]) => name));
    for (const [key, name] of this.#names) if (names.has(name)) this.#names.delete(key);
  }

  #refer({ at }: Located, reference: string): JsonSchema {
    const target = this.#documents.resolve(reference, at);
    const key = new URL(reference, at).href;
    let name = this.#names.get(key);
    if (name === undefined) {
      const last = decodeURIComponentSafe(reference.split(/[/#]/).at(-1) ?? "");
      const base = last.replaceAll(/[^A-Za-z0-9_.-]+/g, "_").slice(0, 60) || "schema";
      const taken = new Set(this.#names.values());
      name = base;
      for (let index = 2; taken.has(name); index++) name = `${base}_${index}`;
      this.#names.set(key, name);
      this.#waiting.push([name, target]);
    }
    return { $ref: `#/$defs/${name}` };
  }

  #writeType(value: Fields, written: { [keyword: string]: unknown }): void {
    const given = Array.isArray(value["type"]) ? value["type"] : [value["type"]];
    const known = [
      ...new Set(given.filter((type): type is string => typeof type === "string" && types.has(type))),
    ];
    if (known.length > 0) written["type"] = known.length === 1 ? known[0] : known;
    else if (isFields(value["properties"])) written["type"] = "object";
    if (value["type"] === "file" || value["format"] === "binary" || value["format"] === "byte") {
      written["type"] = "string";
      written["contentEncoding"] = "base64";
    }
  }

  #writeProperties(
    value: Fields,
    properties: Fields,
    written: { [keyword: string]: unknown },
    inner: (each: unknown) => JsonSchema,
  ): void {
    const hidden = this.#direction === "request" ? "readOnly" : "writeOnly";
    const shown = Object.entries(properties).filter(([, each]) => !isFields(each) || each[hidden] !== true);
    written["properties"] = Object.fromEntries(shown.map(([name, each]) => [name, inner(each)]));
    const names = new Set(shown.map(([name]) => name));
    const { required } = value;
    if (this.#direction === "response" || !Array.isArray(required)) return;
    const needed = [...new Set(required.filter((name): name is string => names.has(name as string)))];
    if (needed.length > 0) written["required"] = needed;
  }

  /** What limits a value, in the words of JSON Schema. What is not a limit there is left out. */
  #writeRules(
    value: Fields,
    written: { [keyword: string]: unknown },
    inner: (each: unknown) => JsonSchema,
  ): void {
    for (const key of numbers) if (typeof value[key] === "number") written[key] = value[key];
    if (Number(written["multipleOf"]) <= 0) delete written["multipleOf"];
    for (const [key, bound] of [
      ["exclusiveMinimum", "minimum"],
      ["exclusiveMaximum", "maximum"],
    ] as const) {
      if (typeof value[key] === "number") written[key] = value[key];
      else if (value[key] === true && typeof written[bound] === "number") {
        written[key] = written[bound];
        delete written[bound];
      }
    }
    for (const key of counts)
      if (Number.isInteger(value[key]) && Number(value[key]) >= 0) written[key] = value[key];
    if (value["uniqueItems"] === true) written["uniqueItems"] = true;
    if (typeof value["format"] === "string" && formats.has(value["format"]))
      written["format"] = value["format"];
    if (typeof value["pattern"] === "string" && isPattern(value["pattern"]))
      written["pattern"] = value["pattern"];
    if (Array.isArray(value["enum"]) && value["enum"].length > 0) {
      const unique = new Map(value["enum"].map((each) => [JSON.stringify(each), each as unknown]));
      written["enum"] = [...unique.values()];
    }
    if (value["const"] !== undefined) written["const"] = value["const"];
    const usual = value["default"];
    const { type } = written;
    const allowed = Array.isArray(type) ? (type as unknown[]) : type === undefined ? undefined : [type];
    // Some defaults are written as text, whatever their type.
    const fits = usual !== undefined && (allowed?.some((each) => isOfType(usual, each)) ?? true);
    if (fits && JSON.stringify(usual).length < 200) written["default"] = usual;
    const { additionalProperties: others } = value;
    if (others === false) written["additionalProperties"] = false;
    else if (isFields(others) && Object.keys(others).length > 0)
      written["additionalProperties"] = inner(others);
    for (const key of ["allOf", "anyOf", "oneOf"] as const) {
      const all = value[key];
      // A value that fits two of several is not wrong: descriptions are seldom as exact as `oneOf`.
      if (Array.isArray(all) && all.length > 0) written[key === "oneOf" ? "anyOf" : key] = all.map(inner);
    }
  }
}

function toNullable(written: { [keyword: string]: unknown }): JsonSchema {
  const { type, enum: values } = written;
  if (Array.isArray(values) && !values.includes(null)) written["enum"] = [...(values as unknown[]), null];
  if (typeof type === "string" && type !== "null") return { ...written, type: [type, "null"] };
  if (Array.isArray(type)) return { ...written, type: [...new Set([...(type as unknown[]), "null"])] };
  return Object.keys(written).length === 0 ? written : { anyOf: [written, { type: "null" }] };
}

function isPattern(pattern: string): boolean {
  if (pattern.length > 500) return false;
  try {
    return new RegExp(pattern, "u").unicode;
  } catch {
    return false; // It is in the syntax of another language.
  }
}

function decodeURIComponentSafe(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** A text in one paragraph, and not all of it when it is long. */
export function shorten(given: string, maxLength: number): string {
  const plain = given.replaceAll(/\s+/g, " ").trim();
  return plain.length <= maxLength ? plain : `${plain.slice(0, maxLength - 1).trimEnd()}…`;
}

/** The members of a value that fit a loose schema of a response. What the API sends otherwise is in the text alone. */
export function prune(value: unknown, schema: unknown, definitions: Fields, depth = 0): unknown {
  if (!isFields(schema) || depth > maxDepth * 2) return value;
  if (typeof schema["$ref"] === "string")
    return prune(value, definitions[schema["$ref"].slice("#/$defs/".length)], definitions, depth + 1);
  if (Array.isArray(schema["anyOf"]))
    return value === null ? value : prune(value, schema["anyOf"][0], definitions, depth + 1);
  const { type } = schema;
  const allowed = Array.isArray(type) ? (type as unknown[]) : type === undefined ? undefined : [type];
  if (allowed !== undefined && !allowed.some((each) => isOfType(value, each))) return undefined;
  if (Array.isArray(value))
    return value.flatMap((each: unknown) => {
      const kept = prune(each, schema["items"], definitions, depth + 1);
      return kept === undefined ? [] : [kept];
    });
  const properties = schema["properties"];
  if (!isFields(value) || !isFields(properties)) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, each]) => {
      const kept = Object.hasOwn(properties, name)
        ? prune(each, properties[name], definitions, depth + 1)
        : each;
      return kept === undefined ? [] : [[name, kept]];
    }),
  );
}

function isOfType(value: unknown, type: unknown): boolean {
  if (type === "null") return value === null;
  if (type === "array") return Array.isArray(value);
  if (type === "object") return isFields(value);
  if (type === "integer") return Number.isInteger(value);
  return typeof value === type;
}
