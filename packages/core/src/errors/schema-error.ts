/** The stable name of a fault in a schema. */
export type SchemaErrorCode =
  /** `$schema` names a dialect we cannot check. */
  | "schema.dialect"
  /** A reference leads out of the document, or to nothing in it. Nothing is ever fetched. */
  | "schema.ref"
  | "schema.too_large"
  | "schema.too_deep"
  | "schema.too_complex"
  /** Not a valid schema of its dialect. Known at the first check, not before. */
  | "schema.invalid"
  /** A Standard Schema that cannot say its own JSON Schema. */
  | "schema.no_json_schema"
  /** The root is not `type: "object"` where the protocol wants that. */
  | "schema.not_object"
  /** Checking one value took more time or stack than is allowed. */
  | "schema.exhausted";

/** The facts behind a {@link SchemaError}, where they apply. */
interface SchemaErrorFacts {
  /** Where in the schema, as a JSON pointer. */
  readonly path?: string;
  /** The limit that was passed. */
  readonly limit?: number;
  readonly cause?: unknown;
}

/** A schema that cannot be used. About the schema itself: a value that does not fit one is not an error but an issue. */
export class SchemaError extends Error {
  override readonly name = "SchemaError";
  readonly code: SchemaErrorCode;
  readonly path: string | undefined;
  readonly limit: number | undefined;

  constructor(code: SchemaErrorCode, message: string, facts: SchemaErrorFacts = {}) {
    super(message, facts.cause === undefined ? undefined : { cause: facts.cause });
    this.code = code;
    this.path = facts.path;
    this.limit = facts.limit;
  }
}
