import * as z from "zod";
import { createRegistry, createServer } from "../../../packages/junctor/dist/index.js";
import { descriptionOf, filler, frames, info, moreTools } from "./settings.mjs";

const input = z.object({ message: z.string() });

export function createEchoServer() {
  return createServer(createEchoRegistry(), info);
}

export function createEchoRegistry() {
  const registry = createRegistry();
  registry.register("echo", { input, description: descriptionOf("echo") }, ({ message }) => message);
  registry.register(
    "stream",
    { input, description: descriptionOf("stream") },
    async ({ message }, context) => {
      for (let step = 1; step <= frames; step++) await context.progress(step, frames, `step ${step}`);
      return message;
    },
  );
  registry.register(
    "large",
    { input, description: descriptionOf("large") },
    ({ message }) => message + filler,
  );
  for (const name of moreTools)
    registry.register(name, { input, description: descriptionOf(name) }, ({ message }) => message);
  return registry;
}
