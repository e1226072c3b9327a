// The agents SDK of OpenAI: tools become function tools, which are invoked as a run would. No model is asked. By default it
// waits 5 s for a list, which is less than many servers need to start.

import { getAllMcpTools, MCPServerStdio, MCPServerStreamableHttp, RunContext } from "@openai/agents";
import { find, runTask } from "./contract.mjs";

await runTask(async (target) => {
  const settings = { name: "junctor", clientSessionTimeoutSeconds: 60 };
  const server =
    target.transport === "http"
      ? new MCPServerStreamableHttp({ ...settings, url: target.url })
      : new MCPServerStdio({ ...settings, ...target });
  await server.connect();
  /** @type {Map<string, import("@openai/agents").FunctionTool>} */
  let tools = new Map();
  return {
    list: async () => {
      const all = await getAllMcpTools({ mcpServers: [server], convertSchemasToStrict: false });
      tools = new Map(all.filter((tool) => tool.type === "function").map((tool) => [tool.name, tool]));
      const names = (await server.listTools()).map(({ name }) => name);
      return names.filter((name) => tools.has(toFunctionName(name)));
    },
    call: async (tool, args) =>
      find(tools, toFunctionName(tool)).invoke(new RunContext({}), JSON.stringify(args)),
    close: () => server.close(),
  };
});

/** A function tool has a name of its own, made from that of the tool. @param {string} name */
function toFunctionName(name) {
  return name.replaceAll(/[^a-zA-Z0-9_]/g, "_");
}
