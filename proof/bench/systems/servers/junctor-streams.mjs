// Started with --expose-gc: the echo server, with a tool that changes its tools and one that collects its garbage.

import { createRegistry, createServer, listenHttp } from "../../../../packages/junctor/dist/index.js";
import { host, info, port } from "../settings.mjs";

const input = { type: "object", properties: { message: { type: "string" } }, required: ["message"] };
const registry = createRegistry();
registry.register("change", { input }, ({ message }) => {
  registry.register("another", {}, () => "another");
  return String(message);
});
registry.register("collect", { input }, async ({ message }) => {
  for (let round = 0; round < 5; round++) {
    globalThis.gc?.();
    await new Promise((resolve) => setImmediate(resolve));
  }
  return String(message);
});
await listenHttp(createServer(registry, info), { port, host });
