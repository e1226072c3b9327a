import { ZodJsonSchemaAdapter } from "@tmcp/adapter-zod";
import { McpServer } from "tmcp";
import * as z from "zod";
import { descriptionOf, filler, frames, info, moreTools } from "./settings.mjs";

const schema = z.object({ message: z.string() });

export function createTmcpServer() {
  const server = new McpServer(
    { ...info, description: "echo" },
    { adapter: new ZodJsonSchemaAdapter(), capabilities: { tools: { listChanged: true } } },
  );
  for (const name of ["echo", ...moreTools])
    server.tool({ name, description: descriptionOf(name), schema }, ({ message }) => textOf(message));
  server.tool({ name: "large", description: descriptionOf("large"), schema }, ({ message }) =>
    textOf(message + filler),
  );
  server.tool({ name: "stream", description: descriptionOf("stream"), schema }, ({ message }) => {
    for (let step = 1; step <= frames; step++) server.progress(step, frames, `step ${step}`);
    return textOf(message);
  });
  return server;
}

/** @param {string} text @returns {{ content: { type: "text", text: string }[] }} */
function textOf(text) {
  return { content: [{ type: "text", text }] };
}
