import type { Ajv, Options } from "ajv";
import type { RegExpEngine, RegExpLike } from "ajv/dist/types/index.js";
import { type Dialect, metaSchemas } from "./dialect.ts";
import type { JsonSchema } from "./types.ts";

/** What checks schemas of one dialect. */
export interface Engine {
  /** Why a document is not a schema of this dialect, or undefined when it is one. */
  findFault(schema: JsonSchema): string | undefined;
  /**
   * A compiler that has seen no other schema. They cannot share one: an instance of ajv keeps every function it
   * compiled for good, even after `removeSchema`, and two tools with the same `$id` would collide in it. A new one
   * without meta-schemas takes 0.1 ms and is garbage once its one schema is compiled.
   */
  createCompiler(options: { readonly allErrors: boolean }): Ajv;
}

const loading = new Map<Dialect, Promise<Engine>>();
const loaded = new Map<Dialect, Engine>();

/** The engine of a dialect if it is loaded, and every check that waited for it has gone on. */
export function loadedEngine(dialect: Dialect): Engine | undefined {
  return loaded.get(dialect);
}

/**
 * Loads the engine of a dialect, once. ajv takes 40 ms to load and another 40 to compile its own meta-schema, which a
 * program that checks no JSON Schema should not pay for at startup.
 *
 * Checks that wait for the engine go on in the order they came. `loadedEngine` gives the engine only in a later turn of
 * the event loop, because a check that need not wait would overtake those that still do, and its tool would begin before
 * theirs. (In Node 22 and later an import settles without a turn of the event loop, so calls of one chunk of input are on
 * both sides of it.)
 */
export function loadEngine(dialect: Dialect): Promise<Engine> {
  let engine = loading.get(dialect);
  if (engine === undefined) {
    engine = createEngine(dialect);
    loading.set(dialect, engine);
    engine.then(
      (created) => setTimeout(() => loaded.set(dialect, created), 0),
      // The next check tries again.
      () => loading.delete(dialect),
    );
  }
  return engine;
}

async function createEngine(dialect: Dialect): Promise<Engine> {
  const { ajvOf, addFormats } = await import("./ajv.ts");
  const AjvClass = ajvOf[dialect];
  const meta = new AjvClass({ strict: false, logger: false });
  addFormats(meta);
  const metaSchema = metaSchemas[dialect];
  // Compiles the meta-schema now, so that no later time limit can interrupt it half-way.
  meta.validate(metaSchema, {});

  return {
    findFault(schema) {
      if (meta.validate(metaSchema, schema)) return undefined;
      const fault = meta.errors?.[0];
      meta.errors = null;
      return `${fault?.instancePath || "/"} ${fault?.message ?? "is not valid"}`;
    },
    createCompiler: ({ allErrors }) => new AjvClass({ ...compilerOptions, formats: meta.formats, allErrors }),
  };
}

/** Tries a pattern as Unicode, as the specification wants, then as the older syntax that escapes like `\_` need. */
const toRegExp: RegExpEngine = Object.assign(
  (pattern: string, flags: string): RegExpLike => {
    try {
      return new RegExp(pattern, flags);
    } catch {
      return new RegExp(pattern);
    }
  },
  { code: "new RegExp" },
);

const compilerOptions: Options = {
  // The document was checked against its meta-schema by the shared instance.
  meta: false,
  validateSchema: false,
  // Unknown keywords and formats are fine, as the specification says.
  strict: false,
  logger: false,
  // `required: ["toString"]` must not be satisfied by what every object inherits.
  ownProperties: true,
  // Inlining would copy a large definition into every place that refers to it: megabytes of code from a small schema.
  inlineRefs: false,
  // The optimizer takes time that grows with the square of the number of properties, and gains nothing measurable.
  code: { regExp: toRegExp, optimize: false },
};
