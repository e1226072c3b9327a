// The MCP adapters of LangChain: tools become LangChain tools, which are invoked as an agent would. They are loaded once, when
// it connects.

import { MultiServerMCPClient } from "@langchain/mcp-adapters";
import { find, runTask } from "./contract.mjs";

await runTask(async (target) => {
  /** @type {import("@langchain/mcp-adapters").Connection} */
  const server =
    target.transport === "http"
      ? { transport: "http", url: target.url }
      : { ...target, restart: { enabled: false } };
  const client = new MultiServerMCPClient({ mcpServers: { junctor: server }, throwOnLoadError: true });
  /** @type {Map<string, { invoke(args: object): Promise<unknown> }>} */
  let tools = new Map();
  return {
    listsOnce: true,
    list: async () => {
      tools = new Map((await client.getTools()).map((tool) => [tool.name, tool]));
      return [...tools.keys()];
    },
    call: async (tool, args) => find(tools, tool).invoke(args),
    close: () => client.close(),
  };
});
