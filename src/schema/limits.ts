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
   * Time for one check, for schemas whose cost can outgrow the value (a pattern, `uniqueItems`, a reference).
   * `Infinity` saves about 60 µs a check and is fine for schemas of your own.
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
