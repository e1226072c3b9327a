import { type OutputUnit, type SchemaDraft, Validator } from "@cfworker/json-schema";

// The engine that checks JSON Schemas where code must not be made from text: an interpreter, in place of ajv (decision 11).

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

interface Engine {
  findFault(schema: object): string | undefined;
  createCompiler(options: { readonly allErrors: boolean }): { compile(schema: object): Validate };
}

const drafts: { readonly [dialect: string]: SchemaDraft } = {
  "2020-12": "2020-12",
  "2019-09": "2019-09",
  "draft-07": "7",
};
const engines = new Map<string, Engine>();

export function loadedEngine(dialect: string): Engine {
  const engine = engines.get(dialect) ?? createEngine(drafts[dialect] ?? "2020-12");
  engines.set(dialect, engine);
  return engine;
}

export function loadEngine(dialect: string): Promise<Engine> {
  return Promise.resolve(loadedEngine(dialect));
}

const types = new Set<unknown>(["string", "number", "integer", "boolean", "null", "array", "object"]);

function createEngine(draft: SchemaDraft): Engine {
  return {
    findFault: (schema) => findTypeFault(schema, ""),
    createCompiler: ({ allErrors }) => ({
      compile: (schema) => {
        const validator = new Validator(withLenientPatterns(schema) as object, draft, !allErrors);
        const validate: Validate = Object.assign(
          (value: unknown): boolean => {
            const { valid, errors } = validator.validate(value);
            validate.errors = valid ? null : innermost(errors).map(toFault);
            return valid;
          },
          { errors: null },
        );
        return validate;
      },
    }),
  };
}

/** An unknown `type` would refuse every value without a word. */
function findTypeFault(schema: unknown, at: string): string | undefined {
  if (typeof schema !== "object" || schema === null) return undefined;
  const { type, properties } = schema as { readonly type?: unknown; readonly properties?: object };
  for (const one of type === undefined ? [] : [type].flat())
    if (!types.has(one)) return `${at}/type must be equal to one of the allowed values`;
  for (const [name, property] of Object.entries(properties ?? {})) {
    const fault = findTypeFault(property, `${at}/properties/${name}`);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

/** The interpreter takes patterns as Unicode only, and throws for escapes such as `\_` that other languages have. */
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

/** Keywords whose fault only says that there is one further in. */
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

/** In the form of ajv. The facts that its keywords have are in the message already. */
const toFault = ({ keyword, instanceLocation, error }: OutputUnit): Fault => ({
  keyword: keyword === "required" ? keyword : "value",
  instancePath: instanceLocation.slice(1),
  message: error.replace(/\.$/, ""),
  params: {},
});
