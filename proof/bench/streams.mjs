// `npm run proof -- bench streams [-- COUNT]`: what idle listen streams cost the server in memory.
//
// The server collects its garbage before it is looked at. Every stream is acknowledged before the measurement and told of
// a change after it, so that none of them was dropped on the quiet.

import { fileURLToPath } from "node:url";
import { freePort } from "./lib/free-port.mjs";
import { Load } from "./lib/load.mjs";
import { requireProc, residentBytes } from "./lib/processes.mjs";
import { System } from "./lib/system.mjs";

const count = Number(process.argv[2] ?? 5000);
requireProc();
const load = new Load();
const port = await freePort();
const file = fileURLToPath(new URL("systems/servers/junctor-streams.mjs", import.meta.url));
const server = new System({ args: ["--expose-gc", file, String(port)], port });
try {
  await server.listening();
  for (const tool of ["collect", "change"])
    await load.open(tool, { transport: "http", port, path: "/mcp", era: "modern", scenario: "small", tool });
  const before = await resident();
  await load.listen("streams", port, count);
  const after = await resident();
  const told = load.told("streams");
  await load.once("change");
  const toldMs = await told;
  console.log(`${count} idle listen streams, Node ${process.version}`);
  console.log(`  resident memory  ${((after - before) / count / 1024).toFixed(1)} KiB a stream`);
  console.log(`  in all           ${(after / 2 ** 20).toFixed(0)} MiB`);
  console.log(`  telling all of them of a change took ${toldMs.toFixed(0)} ms`);
} finally {
  load.end();
  await server.stop();
}

async function resident() {
  await load.once("collect");
  return residentBytes({ pid: server.pid });
}
