import { FastMCP } from "fastmcp";
import * as z from "zod";
import { descriptionOf, filler, frames, moreTools } from "./settings.mjs";

const parameters = z.object({ message: z.string() });

export function createFastServer() {
  const server = new FastMCP({ name: "echo", version: "1.0.0", ping: { enabled: false } });
  for (const name of ["echo", ...moreTools])
    server.addTool({
      name,
      description: descriptionOf(name),
      parameters,
      execute: async ({ message }) => message,
    });
  server.addTool({
    name: "large",
    description: descriptionOf("large"),
    parameters,
    execute: async ({ message }) => message + filler,
  });
  server.addTool({
    name: "stream",
    description: descriptionOf("stream"),
    parameters,
    execute: async ({ message }, { reportProgress }) => {
      for (let step = 1; step <= frames; step++) await reportProgress({ progress: step, total: frames });
      return message;
    },
  });
  return server;
}
