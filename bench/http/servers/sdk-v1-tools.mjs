import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import * as z from "zod";

const inputSchema = { message: z.string() };

export function createMcpServer() {
  const server = new McpServer({ name: "echo", version: "1.0.0" });
  server.registerTool("echo", { inputSchema }, ({ message }) => ({
    content: [{ type: "text", text: message }],
  }));
  server.registerTool("stream", { inputSchema }, async ({ message }, { _meta, sendNotification }) => {
    const progressToken = _meta?.progressToken ?? 0;
    for (let step = 1; step <= 20; step++) {
      const params = { progressToken, progress: step, total: 20, message: `step ${step}` };
      await sendNotification({ method: "notifications/progress", params });
    }
    return { content: [{ type: "text", text: message }] };
  });
  return server;
}
