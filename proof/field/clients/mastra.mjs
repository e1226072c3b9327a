// Mastra: tools become tools of Mastra, which are executed as an agent would.

import { MCPClient } from "@mastra/mcp";
import { find, runTask } from "./contract.mjs";

await runTask(async (target) => {
  const server = target.transport === "http" ? { url: new URL(target.url) } : target;
  const client = new MCPClient({ servers: { junctor: server } });
  /** @type {Map<string, import("@mastra/core/tools").Tool>} */
  let tools = new Map();
  return {
    list: async () => {
      const { toolsets, errors } = await client.listToolsetsWithErrors();
      if (errors.junctor !== undefined) throw new Error(errors.junctor);
      tools = new Map(Object.entries(toolsets.junctor ?? {}));
      return [...tools.keys()];
    },
    call: async (tool, args) => find(tools, tool).execute?.(args, /** @type {any} */ ({})),
    close: () => client.disconnect(),
  };
});
