// The agents SDK of OpenAI: tools become function tools, which are invoked as a run would. No model is asked.

import { getAllMcpTools, MCPServerStdio, MCPServerStreamableHttp, RunContext } from "@openai/agents";
import { find, runTask } from "./contract.mjs";

await runTask(async (target) => {
  const server =
    target.transport === "http"
      ? new MCPServerStreamableHttp({ url: target.url, name: "junctor" })
      : new MCPServerStdio({ ...target, name: "junctor" });
  await server.connect();
  /** @type {Map<string, import("@openai/agents").FunctionTool>} */
  let tools = new Map();
  return {
    list: async () => {
      const all = await getAllMcpTools({ mcpServers: [server], convertSchemasToStrict: false });
      tools = new Map(all.filter((tool) => tool.type === "function").map((tool) => [tool.name, tool]));
      return [...tools.keys()];
    },
    call: async (tool, args) => find(tools, tool).invoke(new RunContext({}), JSON.stringify(args)),
    close: () => server.close(),
  };
});
