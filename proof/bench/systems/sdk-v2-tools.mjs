import { McpServer } from "@modelcontextprotocol/server";
import * as z from "zod";
import { descriptionOf, filler, frames, info, moreTools } from "./settings.mjs";

const inputSchema = z.object({ message: z.string() });

export function createMcpServer() {
  const server = new McpServer(info, { capabilities: { tools: { listChanged: true } } });
  for (const name of ["echo", ...moreTools])
    server.registerTool(name, { inputSchema, description: descriptionOf(name) }, ({ message }) =>
      textOf(message),
    );
  server.registerTool("large", { inputSchema, description: descriptionOf("large") }, ({ message }) =>
    textOf(message + filler),
  );
  server.registerTool(
    "stream",
    { inputSchema, description: descriptionOf("stream") },
    async ({ message }, { mcpReq }) => {
      const progressToken = mcpReq._meta?.progressToken ?? 0;
      for (let step = 1; step <= frames; step++) {
        const params = { progressToken, progress: step, total: frames, message: `step ${step}` };
        await mcpReq.notify({ method: "notifications/progress", params });
      }
      return textOf(message);
    },
  );
  return server;
}

/** @param {string} text @returns {{ content: { type: "text", text: string }[] }} */
function textOf(text) {
  return { content: [{ type: "text", text }] };
}
