import { SchemaError } from "../errors/index.ts";
import { describeValue, type JsonSchema } from "./types.ts";

/** The dialects of JSON Schema we check. Draft-06 is checked as draft-07, which only adds to it. */
export type Dialect = "2020-12" | "2019-09" | "draft-07";

const dialects: ReadonlyMap<string, Dialect> = new Map([
  ["json-schema.org/draft/2020-12/schema", "2020-12"],
  ["json-schema.org/draft/2019-09/schema", "2019-09"],
  ["json-schema.org/draft-07/schema", "draft-07"],
  ["json-schema.org/draft-06/schema", "draft-07"],
]);

/** The addresses of their meta-schemas. */
export const metaSchemas: Record<Dialect, string> = {
  "2020-12": "https://json-schema.org/draft/2020-12/schema",
  "2019-09": "https://json-schema.org/draft/2019-09/schema",
  "draft-07": "http://json-schema.org/draft-07/schema#",
};

/**
 * The dialect a schema is written in: 2020-12 unless `$schema` says otherwise (MCP 2025-11-25 and later).
 *
 * @throws {@link SchemaError} `schema.dialect`.
 */
export function dialectOf(schema: JsonSchema): Dialect {
  const uri = schema["$schema"];
  if (uri === undefined) return "2020-12";
  const dialect =
    typeof uri === "string" ? dialects.get(uri.replace(/^https?:\/\//, "").replace(/#$/, "")) : undefined;
  if (dialect !== undefined) return dialect;
  throw new SchemaError(
    "schema.dialect",
    `The schema's "$schema" is ${describeValue(uri)}, a dialect that cannot be checked. ` +
      `Use ${metaSchemas["2020-12"]} (or 2019-09, draft-07, draft-06), or leave "$schema" out.`,
    { path: "/$schema" },
  );
}
