// mcporter, by the runtime that its command line is made of.

import { createRuntime } from "mcporter";
import { runTask } from "./contract.mjs";

await runTask(async (target) => {
  /** @type {import("mcporter").ServerDefinition} */
  const server =
    target.transport === "http"
      ? { name: "junctor", command: { kind: "http", url: new URL(target.url) } }
      : { name: "junctor", command: { ...target, kind: "stdio" }, env: target.env };
  const runtime = await createRuntime({ servers: [server] });
  return {
    list: async () => (await runtime.listTools("junctor")).map(({ name }) => name),
    call: (tool, args) => runtime.callTool("junctor", tool, { args }),
    close: () => runtime.close(),
  };
});
