// The smallest useful server: two tools on standard input and output, one of them streaming.
//
//   npx --no-install junctor call add a=2 b=3 -- node examples/hello-server.mjs
//   npx --no-install junctor call count to=5 -- node examples/hello-server.mjs

import { createRegistry, createServer, serveStdio } from "junctor";

const registry = createRegistry();

registry.register(
  "add",
  {
    description: "Adds two numbers.",
    input: {
      type: "object",
      properties: { a: { type: "number" }, b: { type: "number" } },
      required: ["a", "b"],
    },
  },
  ({ a, b }) => String(a + b),
);

registry.register(
  "count",
  {
    description: "Counts, as it happens.",
    input: { type: "object", properties: { to: { type: "integer", maximum: 1000 } }, required: ["to"] },
  },
  async function* ({ to }) {
    for (let number = 1; number <= to; number++) yield `${number} `;
  },
);

await serveStdio(createServer(registry, { name: "hello", version: "1.0.0" }));
