import type { Issue } from "./issue.ts";

/** What a schema may cost. Schemas come from other people's servers too, and compiling one writes code. */
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
