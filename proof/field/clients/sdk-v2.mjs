// The official SDK, version 2. It asks for the modern protocol first and falls back to the legacy one.

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { runTask } from "./contract.mjs";
import { listPages } from "./open-sdk-v1.mjs";

await runTask(async (target) => {
  const client = new Client(
    { name: "field-sdk-v2", version: "1.0.0" },
    { versionNegotiation: { mode: "auto" } },
  );
  await client.connect(
    target.transport === "http"
      ? new StreamableHTTPClientTransport(new URL(target.url))
      : new StdioClientTransport(target),
  );
  return {
    list: () => listPages((cursor) => client.listTools(cursor === undefined ? {} : { cursor })),
    call: (tool, args) => client.callTool({ name: tool, arguments: args }),
    close: () => client.close(),
  };
});
