// `npm run proof -- conformance cluster`: the official suite, both eras, through three gateways that share a Redis, behind a haproxy that gives
// each request to the next one. Needs Debian's redis-server and haproxy. All further arguments go to the run:
//
//   npm run proof -- conformance cluster --revision 2025-11-25

import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { loadTypeScript } from "../../scripts/load-typescript.mjs";
import { reportSetupError, root, setupConformance } from "../../scripts/setup.mjs";

try {
  setupConformance();
} catch (error) {
  reportSetupError(error);
  process.exit(1);
}

const { missingPrograms } = await loadTypeScript("test/cluster/support/program.ts");
const { startStage } = await loadTypeScript("test/cluster/support/stage.ts");
const { startBehind, toGatewayConfig } = await import(
  pathToFileURL(join(root, "proof/conformance/dist/through.js")).href
);

const missing = missingPrograms();
if (missing !== undefined) {
  console.log(`${missing} cannot be had here: the suite is not run through several replicas`);
  process.exit(0);
}

/** What is behind the gateways, and the flags that tell the run of it. */
const throughs = [
  { through: { kit: "junctor", transport: "stdio", serves: "both" }, flags: ["--through", "stdio"] },
  { through: { kit: "junctor", transport: "http", serves: "both" }, flags: ["--through", "http"] },
  { through: { kit: "sdk-v2", transport: "http", serves: "both" }, flags: ["--sdk-v2", "--through", "http"] },
];

let failures = 0;
for (const { through, flags } of throughs) {
  const behind = await startBehind(through);
  const stage = await startStage(toGatewayConfig(through, behind?.url));
  try {
    // By name: the suite tests the defence against DNS rebinding only where it knows the host to be this one.
    const url = `http://localhost:${stage.balancer.port}/mcp`;
    const run = join(root, "proof/conformance/dist/run.js");
    const args = [run, "--url", url, ...flags, ...process.argv.slice(2)];
    const [code] = await once(spawn(process.execPath, args, { stdio: "inherit" }), "exit");
    if (code !== 0) failures++;
  } finally {
    await stage[Symbol.asyncDispose]();
    await behind?.close();
  }
}
console.log(`Through ${throughs.length} kinds of servers, with 3 replicas each: ${failures} failed`);
process.exitCode = failures === 0 ? 0 : 1;
