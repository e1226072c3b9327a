import { createRegistry, createServer, listenHttp } from "junctor";
import * as z from "zod";
import { announce } from "../child.mjs";

const input = z.object({ message: z.string() });
const registry = createRegistry();
registry.register("echo", { input }, ({ message }) => message);
registry.register("stream", { input }, async ({ message }, context) => {
  for (let step = 1; step <= 20; step++) await context.progress(step, 20, `step ${step}`);
  return message;
});
const listener = await listenHttp(createServer(registry, { name: "echo", version: "1.0.0" }), { port: 0 });
announce(listener.port);
