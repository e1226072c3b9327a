import { createRegistry, createServer, listenHttp } from "junctor";

const registry = createRegistry();
registry.register("echo", {}, () => "echo");
const server = createServer(registry, { name: "streams", version: "1.0.0" });
const listener = await listenHttp(server, { port: 0 });

process.on("message", (wish) => {
  if (wish === "change") {
    registry.register("another", {}, () => "another");
    process.send?.({});
  } else {
    void measure();
  }
});

async function measure() {
  for (let round = 0; round < 5; round++) {
    globalThis.gc?.();
    await new Promise((resolve) => setImmediate(resolve));
  }
  process.send?.(process.memoryUsage());
}

process.send?.({ port: listener.port });
