import { entrySchema } from "./entry-rows.ts";
import { gatewayRows } from "./gateway-rows.ts";
import { type JsonSchema, toSchema } from "./rows.ts";
import { defaultRows, serverRows } from "./server-rows.ts";

/** The schema by which editors complete and check a config: `junctor.schema.json` in the package. */
export function createConfigSchema(): JsonSchema {
  const byName = (definition: string, doc: string): JsonSchema => ({
    description: doc,
    type: ["object", "null"],
    additionalProperties: { $ref: `#/$defs/${definition}` },
  });
  const section = toSchema(gatewayRows) as { readonly properties: object };
  const schemaName = { type: "string", description: "Where this schema is, for editors." };
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "A config of MCP servers, with settings of Junctor",
    type: "object",
    // Keywords of VS Code.
    allowComments: true,
    allowTrailingCommas: true,
    properties: {
      $schema: schemaName,
      mcpServers: byName("entry", "The servers, as most clients write them."),
      servers: byName("entry", "The servers, as VS Code writes them."),
      junctor: { $ref: "#/$defs/junctor" },
    },
    $defs: {
      entry: { title: "A server, by its command or its URL", ...entrySchema },
      server: { title: "Settings of one server", ...toSchema(serverRows) },
      defaults: { title: "Settings of every server that does not say otherwise", ...toSchema(defaultRows) },
      junctor: {
        title: "Settings of Junctor",
        ...section,
        properties: {
          $schema: schemaName,
          servers: byName("server", "Settings of servers, by their names."),
          defaults: {
            $ref: "#/$defs/defaults",
            description: "Settings of every server that does not say otherwise.",
          },
          ...section.properties,
        },
      },
    },
  };
}
