// The AI SDK: tools become tools of the AI SDK, which are executed as generateText would.

import { createMCPClient } from "@ai-sdk/mcp";
import { Experimental_StdioMCPTransport as StdioTransport } from "@ai-sdk/mcp/mcp-stdio";
import { find, runTask } from "./contract.mjs";

await runTask(async (target) => {
  const client = await createMCPClient({
    transport: target.transport === "http" ? { type: "http", url: target.url } : new StdioTransport(target),
  });
  /** @type {Map<string, Awaited<ReturnType<typeof client.tools>>[string]>} */
  let tools = new Map();
  return {
    list: async () => {
      tools = new Map(Object.entries(await client.tools()));
      return [...tools.keys()];
    },
    call: async (tool, args) =>
      find(tools, tool).execute(args, { toolCallId: tool, messages: [], context: {} }),
    close: () => client.close(),
  };
});
