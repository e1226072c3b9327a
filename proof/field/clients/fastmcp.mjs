// mcp-client, by the author of fastmcp: fastmcp itself is for servers and has no client.

import { MCPClient } from "mcp-client";
import { runTask } from "./contract.mjs";

await runTask(async (target) => {
  const client = new MCPClient({ name: "field-fastmcp", version: "1.0.0" });
  await client.connect(
    target.transport === "http"
      ? { type: "httpStream", url: target.url }
      : { ...target, type: "stdio", stderr: "inherit" },
  );
  return {
    list: async () => (await client.getAllTools()).map(({ name }) => name),
    call: (tool, args) => client.callTool({ name: tool, arguments: args }),
    close: () => client.close(),
  };
});
