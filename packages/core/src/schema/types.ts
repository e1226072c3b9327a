/** What a schema may cost. Schemas come from foreign servers too, and compiling one generates code. */
export interface SchemaLimits {
  /** Length of the document as JSON, in bytes. */
  readonly maxBytes: number;
  /** Nesting of objects and arrays in the document. */
  readonly maxDepth: number;
  /** Objects in the document, whether subschemas or not. */
  readonly maxSubschemas: number;
  /** Characters of one regular expression. */
  readonly maxPatternLength: number;
  /**
   * Time for one check, for schemas whose cost can outgrow the value (a pattern, `uniqueItems`, a reference). Costs about 60 µs a
   * check; other schemas cost nothing. Schemas of our own need it too: the values come from callers.
   */
  readonly maxCheckMs: number;
}

export const defaultSchemaLimits: SchemaLimits = {
  maxBytes: 256 * 1024,
  maxDepth: 64,
  maxSubschemas: 10_000,
  maxPatternLength: 1_000,
  maxCheckMs: 250,
};

/** A JSON Schema document, not yet checked to be one. */
export type JsonSchema = { readonly [keyword: string]: unknown };

/** The verdict on one value. Use `value` from here on: it may differ from the value that was checked. */
export type Checked =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly issues: readonly Issue[] };

/** A schema that can be listed and that checks values. */
export interface Schema {
  /** The document to list. Not a copy: do not change it. */
  readonly json: JsonSchema;
  /**
   * Checks one value. Always `await` it: the first check of a JSON Schema loads and compiles it, later ones
   * answer at once. Throws or rejects with a `SchemaError` (`schema.invalid`, `schema.ref`, `schema.exhausted`)
   * when the schema itself is at fault.
   */
  check(value: unknown): Checked | Promise<Checked>;
}

/** One way in which a value does not fit its schema. */
export interface Issue {
  /** Where in the value, as a JSON pointer; `""` is the root. */
  readonly path: string;
  /** The expected value, and the actual one. */
  readonly message: string;
}

/** How many issues are ever reported for one value: enough for a model to fix all it did wrong in one go. */
export const maxIssues = 8;

const maxMessageLength = 300;
const maxValueLength = 60;

/**
 * All issues as one sentence a model can act on.
 *
 * @example
 * describeIssues([{ path: "/city", message: "must be string (got number 3)" }]);
 * // "Invalid arguments: /city must be string (got number 3)"
 */
export function describeIssues(issues: readonly Issue[], subject = "Invalid arguments"): string {
  const shown = issues.slice(0, maxIssues).map(({ path, message }) => {
    return `${clip(path === "" ? "/" : path, maxMessageLength)} ${clip(message, maxMessageLength)}`;
  });
  const left = issues.length - shown.length;
  if (left > 0) shown.push(`and ${left} more`);
  return shown.length === 0 ? subject : `${subject}: ${shown.join("; ")}`;
}

/** The JSON pointer (RFC 6901) through the given keys. */
export function toPointer(keys: readonly PropertyKey[]): string {
  return keys.map((key) => `/${String(key).replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}

/** A value in few words: its type, and as much of itself as fits. Reads no more of a large value than it shows. */
export function describeValue(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return `array of ${value.length}`;
  switch (typeof value) {
    case "string":
      return `string ${JSON.stringify(clip(value, maxValueLength))}`;
    case "number":
    case "boolean":
    case "bigint":
      return `${typeof value} ${value}`;
    default:
      return typeof value;
  }
}

/** The text, cut at `maxLength` with an ellipsis. */
export function clip(text: string, maxLength: number): string {
  return text.length <= maxLength ? text : `${text.slice(0, maxLength - 1)}…`;
}
