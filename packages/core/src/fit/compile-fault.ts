import { projectTool, type Tool } from "../mcp/index.ts";
import {
  dialectOf,
  compileAsSdk,
  clip,
  surveySchema,
  type JsonSchema,
  defaultSchemaLimits,
} from "../schema/index.ts";
import { isPlainSchema } from "./plain-schema.ts";

/** How long compiling one schema may take. Clients would need as long, for each list. */
const maxCompileMs = 2000;

/** How long the schemas of one list may take together. One server's schemas must not keep the others waiting. */
export const maxListMs = 5000;

/** Results by the hash of the schema: servers are listed again and again. */
const known = new Map<string, string | undefined>();
const maxKnown = 2000;

/** Time that may be spent, shared by the schemas of one list. */
export interface Budget {
  leftMs: number;
}

/**
 * Why clients cannot compile a tool's output schema; undefined when they can. The official SDK v1 compiles the schemas of
 * a whole list with ajv and gives the list up when one fails; v2 refuses each call of such a tool.
 */
export async function findCompileFault(tool: Tool, budget: Budget): Promise<string | undefined> {
  const { outputSchema } = tool;
  if (outputSchema === undefined || isPlainSchema(outputSchema)) return undefined;
  const key = process
    .getBuiltinModule("node:crypto")
    .createHash("sha256")
    .update(JSON.stringify(outputSchema))
    .digest("base64");
  if (known.has(key)) return known.get(key);
  if (budget.leftMs <= 0) return "the output schemas of this server take too long to compile";
  const startedAt = performance.now();
  const fault = await compileAll(tool, outputSchema);
  budget.leftMs -= performance.now() - startedAt;
  if (known.size >= maxKnown) known.clear();
  known.set(key, fault);
  // Other work of this process gets its turn between two schemas.
  await new Promise((resolve) => setImmediate(resolve));
  return fault;
}

/** Compiles the schema as the clients do: v1 with draft-07, v2 with the dialect it declares, in the form each is sent. */
async function compileAll(tool: Tool, outputSchema: JsonSchema): Promise<string | undefined> {
  try {
    surveySchema(outputSchema, defaultSchemaLimits);
    const dialect = dialectOf(outputSchema);
    const legacy = projectTool(tool, "2025-11-25").outputSchema ?? outputSchema;
    await compileAsSdk("draft-07", legacy, maxCompileMs);
    if (dialect !== "draft-07") await compileAsSdk(dialect, legacy, maxCompileMs);
    if (legacy !== outputSchema) await compileAsSdk(dialect, outputSchema, maxCompileMs);
    return undefined;
  } catch (error) {
    return error instanceof Error ? clip(error.message, 200) : String(error);
  }
}
