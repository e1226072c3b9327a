// A server over HTTP with a tool that streams for as long as its reader takes it, and one that answers at once. Prints its port.

import { createRegistry, createServer, listenHttp } from "../../../packages/junctor/dist/index.js";

const registry = createRegistry();
const piece = "x".repeat(64 * 1024);
registry.register("echo", {}, () => "here");
registry.register("flood", {}, async function* () {
  for (;;) yield piece;
});
const server = createServer(registry, { name: "flood", version: "1.0.0" });
const listener = await listenHttp(server, {
  port: 0,
  stallMs: 5000,
  onWarning: () => {},
});
process.stdout.write(`${listener.port}\n`);
