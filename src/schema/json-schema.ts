import type { Issue } from "./issue.ts";

/** A JSON Schema document, not yet checked to be one. */
export type JsonSchema = { readonly [keyword: string]: unknown };

/** The verdict on one value. `value` is what to go on with: it may differ from what was checked. */
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
