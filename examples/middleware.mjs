// Middleware around tools: one of our own, and four that are there. The same objects go around a registry, a client or a
// gateway; a gateway loads them from files: "junctor": { "middleware": ["./mine.mjs"] }.
//
//   node examples/middleware.mjs

import {
  allowTools,
  auditLog,
  connect,
  createRegistry,
  createServer,
  limitRate,
  redact,
  ToolError,
  withMiddleware,
} from "junctor";

const registry = createRegistry();
const input = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
registry.register(
  "forecast",
  { input },
  ({ city }) => `Sun in ${String(city)}. Ask ada@example.com for more.`,
);
registry.register("reset_stations", {}, () => "All stations were reset.");

// Three hooks, each optional: filterTools, beforeCall, afterCall.
const landOnly = {
  beforeCall: (call) => {
    // The model reads this and can try something else.
    if (call.arguments.value.city === "Atlantis") throw new ToolError("Atlantis is under water.");
  },
};

const guarded = withMiddleware(registry, [
  // The first is outermost, so the record also has what the others refuse.
  auditLog({ record: ({ tool, outcome }) => console.log(`  audit: ${tool} ${outcome}`) }),
  allowTools({ deny: ["reset_*"] }),
  limitRate({ callsPerMinute: 3 }),
  landOnly,
  redact({ patterns: ["email"] }),
]);

const client = await connect({ server: createServer(guarded, { name: "weather", version: "1.0.0" }) });
console.log((await client.listTools()).map(({ name }) => name).join(" "));
for (const city of ["Oslo", "Atlantis", "Rome", "Lima"]) {
  const { content } = await client.callTool("forecast", { city });
  console.log(`${city}: ${content[0].text}`);
}
const [denied] = await Promise.allSettled([client.callTool("reset_stations")]);
console.log(`reset_stations: ${denied.reason.message}`);
await client.close();
