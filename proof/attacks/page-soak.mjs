// `npm run proof -- attacks page-soak`: calls tools of a gateway for ten minutes while its admin page is open in Chromium, and prints how the
// memory of both changed. Fails when what either has in use after a collection grows by more than 5 MB an hour after the first
// quarter. The memory of the process as the kernel counts it is printed too: it depends on when V8 collects.
//
//   npm run proof -- attacks page-soak --minutes 2

import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { chromium } from "playwright-core";
import { installChromium } from "../../scripts/chromium.mjs";
import { root } from "../../scripts/setup.mjs";

const { values } = parseArgs({ options: { minutes: { type: "string", default: "10" } } });
const minutes = Number(values.minutes);
const callsPerSecond = 100;
const mostAnHour = 5;

const folder = mkdtempSync(join(tmpdir(), "junctor-page-soak-"));
const config = join(folder, "mcp.json");
const server = join(root, "test/fixtures/page-server.mjs");
const mcpServers = { demo: { command: process.execPath, args: [server] } };
const accessLog = { file: join(folder, "access.jsonl"), maxBytes: 1024 * 1024, keep: 1 };
writeFileSync(config, JSON.stringify({ mcpServers, junctor: { admin: { port: 0 }, accessLog } }));
// The gateway collects, and says what it has in use, when it is asked to by a signal.
const measured = join(folder, "memory.json");
const probe = join(folder, "probe.mjs");
writeFileSync(
  probe,
  `import { renameSync, writeFileSync } from "node:fs";
  process.on("SIGUSR2", () => {
    const { rss } = process.memoryUsage();
    gc();
    const { heapUsed, external } = process.memoryUsage();
    writeFileSync(${JSON.stringify(`${measured}.new`)}, JSON.stringify({ rss, used: heapUsed + external }));
    renameSync(${JSON.stringify(`${measured}.new`)}, ${JSON.stringify(measured)});
  });`,
);
const args = [
  "--expose-gc",
  "--import",
  probe,
  "packages/junctor/dist/cli/main.js",
  "serve",
  "--config",
  config,
  "--port",
  "0",
];
if (!installChromium()) process.exit(1);
const gateway = spawn(process.execPath, args, {
  cwd: root,
  stdio: ["ignore", "pipe", "inherit"],
});
const browser = await chromium.launch({
  executablePath: "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--js-flags=--expose-gc", "--disable-background-networking"],
});
try {
  const output = await untilReady();
  const url = /http:\/\/127\.0\.0\.1:\d+\/mcp/.exec(output)[0];
  const page = await browser.newPage();
  await page.goto(/http:\/\/127\.0\.0\.1:\d+\/#key=\S+/.exec(output)[0]);
  await page.getByRole("heading", { name: "demo" }).waitFor();
  await page.evaluate(`location.hash = "#/calls"`);
  const samples = [];
  let calls = 0;
  const endsAt = performance.now() + minutes * 60_000;
  for (let second = 1; performance.now() < endsAt; second++) {
    const next = performance.now() + 1000;
    await Promise.all(Array.from({ length: callsPerSecond }, () => call(url)));
    calls += callsPerSecond;
    if (second % 5 === 0) samples.push(await sample(page));
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, next - performance.now())));
  }
  const kept = samples.slice(Math.floor(samples.length / 4));
  const grown = ["gateway", "page"].map((name) => [name, slopeOf(kept, name), kept.at(-1)[name]]);
  console.log(`${calls} calls in ${minutes} minutes with the page open`);
  for (const [name, slope, now] of grown)
    console.log(`in use by the ${name}: ${now.toFixed(1)} MB, slope ${slope.toFixed(1)} MB an hour`);
  const resident = [0, 0.25, 0.5, 0.75, 1].map((share) =>
    samples[Math.round(share * (samples.length - 1))].resident.toFixed(0),
  );
  console.log(`memory of the gateway's process over time: ${resident.join(", ")} MB`);
  process.exitCode = grown.every(([, slope]) => slope <= mostAnHour) ? 0 : 1;
} finally {
  await browser.close();
  gateway.kill("SIGTERM");
  rmSync(folder, { recursive: true, force: true });
}

function untilReady() {
  return new Promise((resolve, reject) => {
    let text = "";
    gateway.stdout.setEncoding("utf8").on("data", (part) => {
      text += part;
      if (text.includes("#key=") && text.includes("is up")) resolve(text);
    });
    gateway.once("exit", (code) => reject(new Error(`The gateway ended with code ${code}: ${text}`)));
  });
}

async function call(url) {
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  const params = { name: "demo__add", arguments: { a: 1, b: 2 }, _meta };
  const answer = await fetch(url, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": "2026-07-28",
      "mcp-method": "tools/call",
      "mcp-name": "demo__add",
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params }),
  });
  if (!(await answer.text()).includes('"3"')) throw new Error("A call was not answered");
}

/** Megabytes that are in use after a collection, and those of the gateway's process before it. */
async function sample(page) {
  rmSync(measured, { force: true });
  gateway.kill("SIGUSR2");
  while (!existsSync(measured)) await new Promise((resolve) => setTimeout(resolve, 10));
  const { rss, used } = JSON.parse(readFileSync(measured, "utf8"));
  const heap = await page.evaluate(`gc(), performance.memory.usedJSHeapSize`);
  return { at: performance.now(), gateway: used / 1e6, resident: rss / 1e6, page: heap / 1e6 };
}

/** Megabytes an hour, by least squares. */
function slopeOf(samples, name) {
  const mean = (pick) => samples.reduce((sum, each) => sum + pick(each), 0) / samples.length;
  const [at, of] = [mean((each) => each.at), mean((each) => each[name])];
  const top = samples.reduce((sum, each) => sum + (each.at - at) * (each[name] - of), 0);
  const below = samples.reduce((sum, each) => sum + (each.at - at) ** 2, 0);
  return (top / below) * 3_600_000;
}
