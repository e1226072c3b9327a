import type { Dialect } from "./dialect.ts";
import { loadAjv } from "./engine.ts";
import { withinTime } from "./time-box.ts";
import type { JsonSchema } from "./types.ts";

/** Compiles a schema as both official SDKs would. Rejects if they could not, and after `maxMs`. */
export async function compileAsSdk(dialect: Dialect, schema: JsonSchema, maxMs: number): Promise<void> {
  const [AjvClass, formats] = await Promise.all([loadAjv(dialect), import("ajv-formats")]);
  withinTime(maxMs, () => {
    const ajv = new AjvClass({ strict: false, validateSchema: false, allErrors: true, logger: false });
    formats.default.default(ajv);
    ajv.compile(schema);
  });
}
