import { type OutputUnit, type SchemaDraft, Validator } from "@cfworker/json-schema";

// Replaces ajv where code must not be made from text: an interpreter checks values against JSON Schemas (decision 11).

interface Fault {
  readonly keyword: string;
  readonly instancePath: string;
  readonly message: string;
  readonly params: object;
}

interface Validate {
  (value: unknown): boolean;
  errors: readonly Fault[] | null;
}

/** The part of ajv's class that the checks of JSON Schemas use. */
class Interpreter {
  readonly formats: object = {};
  errors: readonly Fault[] | null = null;
  readonly #draft: SchemaDraft;
  readonly #allErrors: boolean;

  constructor(draft: SchemaDraft, allErrors = false) {
    this.#draft = draft;
    this.#allErrors = allErrors;
  }

  /** Checks a schema. Only the types are checked, whatever the meta-schema. */
  validate(_metaSchema: string, schema: object): boolean {
    const fault = findTypeFault(schema, "");
    this.errors = fault === undefined ? null : [fault];
    return fault === undefined;
  }

  compile(schema: object): Validate {
    const validator = new Validator(withLenientPatterns(schema) as object, this.#draft, !this.#allErrors);
    const validate: Validate = Object.assign(
      (value: unknown): boolean => {
        const { valid, errors } = validator.validate(value);
        validate.errors = valid ? null : innermost(errors).map(toFault);
        return valid;
      },
      { errors: null },
    );
    return validate;
  }
}

interface Options {
  readonly allErrors?: boolean;
}

const of = (draft: SchemaDraft): new (options: Options) => Interpreter =>
  class extends Interpreter {
    constructor({ allErrors }: Options) {
      super(draft, allErrors);
    }
  };

/** Has the names of `schema/ajv.ts` in core, which this file replaces. */
export const ajvOf: { readonly [dialect: string]: new (options: Options) => Interpreter } = {
  "2020-12": of("2020-12"),
  "2019-09": of("2019-09"),
  "draft-07": of("7"),
};

/** The interpreter knows the formats. */
export function addFormats(): void {}

const types = new Set<unknown>(["string", "number", "integer", "boolean", "null", "array", "object"]);

/** Finds an unknown `type`, which would silently refuse every value. */
function findTypeFault(schema: unknown, at: string): Fault | undefined {
  if (typeof schema !== "object" || schema === null) return undefined;
  const { type, properties } = schema as { readonly type?: unknown; readonly properties?: object };
  for (const one of type === undefined ? [] : [type].flat())
    if (!types.has(one)) {
      const message = "must be equal to one of the allowed values";
      return { keyword: "enum", instancePath: `${at}/type`, message, params: {} };
    }
  for (const [name, property] of Object.entries(properties ?? {})) {
    const fault = findTypeFault(property, `${at}/properties/${name}`);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

/** Rewrites patterns: the interpreter takes Unicode patterns only, and throws for escapes such as `\_` of other languages. */
function withLenientPatterns(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(withLenientPatterns);
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => [
      key,
      key === "pattern" && typeof member === "string"
        ? toUnicodePattern(member)
        : withLenientPatterns(member),
    ]),
  );
}

function toUnicodePattern(pattern: string): string {
  try {
    return new RegExp(pattern, "u").source;
  } catch {
    return pattern.replaceAll(
      /\\([^\w\s^$\\.*+?()[\]{}|/-])|\\([_ -])/g,
      (_, one?: string, other?: string) => one ?? other ?? "",
    );
  }
}

/** Keywords whose fault only says that there is another fault further in. */
const outer = new Set([
  "properties",
  "items",
  "prefixItems",
  "$ref",
  "allOf",
  "additionalProperties",
  "dependentSchemas",
]);

function innermost(units: readonly OutputUnit[]): readonly OutputUnit[] {
  const inner = units.filter(({ keyword }) => !outer.has(keyword) && keyword !== "false");
  return inner.length === 0 ? units : inner;
}

/** A fault in the form of ajv. The message already contains the params. */
const toFault = ({ keyword, instanceLocation, error }: OutputUnit): Fault => ({
  keyword: keyword === "required" ? keyword : "value",
  instancePath: instanceLocation.slice(1),
  message: error.replace(/\.$/, ""),
  params: {},
});
