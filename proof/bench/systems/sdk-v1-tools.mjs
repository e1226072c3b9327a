import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import * as z from "zod";
import { descriptionOf, filler, frames, info, moreTools } from "./settings.mjs";

const inputSchema = { message: z.string() };

export function createMcpServer() {
  const server = new McpServer(info);
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
    async ({ message }, { _meta, sendNotification }) => {
      const progressToken = _meta?.progressToken ?? 0;
      for (let step = 1; step <= frames; step++) {
        const params = { progressToken, progress: step, total: frames, message: `step ${step}` };
        await sendNotification({ method: "notifications/progress", params });
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
