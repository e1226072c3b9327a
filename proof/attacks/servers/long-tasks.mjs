// A server on stdio whose only tool runs as a task until it is cancelled. It has the limits of the toolkit: 1,024 tasks of one caller.

import { createRegistry, createServer, serveStdio } from "../../../packages/junctor/dist/index.js";

const registry = createRegistry();
registry.register(
  "work",
  { task: "required" },
  (_, { signal }) =>
    new Promise((resolve) => signal.addEventListener("abort", () => resolve("stopped"), { once: true })),
);
await serveStdio(createServer(registry, { name: "long-tasks", version: "1" }));
