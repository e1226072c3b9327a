import type { Dialect } from "./dialect.ts";
import { withinTime } from "./time-box.ts";
import type { JsonSchema } from "./types.ts";

/** Compiles a schema as both official SDKs would. Rejects if they could not, and after `maxMs`. */
export async function compileAsSdk(dialect: Dialect, schema: JsonSchema, maxMs: number): Promise<void> {
  const { ajvOf, addFormats } = await import("./ajv.ts");
  withinTime(maxMs, () => {
    const ajv = new ajvOf[dialect]({ strict: false, validateSchema: false, allErrors: true, logger: false });
    addFormats(ajv);
    ajv.compile(schema);
  });
}
