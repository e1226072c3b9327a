// `npm run bench:workers`: what `serve --workers N` costs and how it spreads, against one process, in turns of one run.
//
//   CPU a call     user and system time of all processes of the gateway, to a server over HTTP; and to one on stdio, which one worker
//                  runs for all: that has the hop between workers in it
//   spread         how many calls each worker took from many connections; from its CPU time
//   loss           how long until there is a new worker in place of one that was killed, and what callers saw meanwhile
//
// CPU time does not change with the load of the machine as wall time does. Linux only.

import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { freePort } from "./lib/free-port.mjs";
import { cpuMicros, pidsOf, requireProc } from "./lib/processes.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const upstream = (/** @type {string} */ name) => join(root, "bench/systems/upstreams", name);
const connections = 64;
const callsPerTurn = 4000;
const turns = Number(process.argv[2] ?? 5);

requireProc();
const folder = mkdtempSync(join(tmpdir(), "junctor-bench-"));
/** @type {import("node:child_process").ChildProcess[]} */
const children = [];
try {
  const web = await freePort();
  children.push(spawn(process.execPath, [upstream("echo-http.mjs"), String(web)], { stdio: "ignore" }));
  const config = join(folder, "mcp.json");
  const mcpServers = {
    web: { type: "http", url: `http://127.0.0.1:${web}/mcp` },
    pipe: { command: process.execPath, args: [upstream("echo-stdio.mjs")] },
  };
  writeFileSync(config, JSON.stringify({ mcpServers, junctor: { admin: false } }), { mode: 0o600 });
  /** @type {Map<number, Gateway>} */
  const gateways = new Map();
  for (const workers of [1, 2, 4]) gateways.set(workers, await startGateway(workers, config));
  await compare(gateways);
  for (const workers of [2, 4]) await kill(/** @type {Gateway} */ (gateways.get(workers)), workers);
} finally {
  for (const child of children) child.kill("SIGTERM");
  rmSync(folder, { recursive: true, force: true });
}

/** @typedef {{ pid: number, port: number, agent: Agent }} Gateway */

/** @param {number} workers @param {string} config @returns {Promise<Gateway>} */
async function startGateway(workers, config) {
  const port = await freePort();
  const args = ["serve", "--config", config, "--port", String(port), "--log-level", "error"];
  if (workers > 1) args.push("--workers", String(workers));
  const own = join(folder, `w${workers}`);
  const env = { ...process.env, XDG_STATE_HOME: own, XDG_CACHE_HOME: own };
  const child = spawn(process.execPath, [join(root, "dist/cli/main.js"), ...args], { env, stdio: "ignore" });
  children.push(child);
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  const gateway = { pid: /** @type {number} */ (child.pid), port, agent };
  await until(async () => (await fetch(`http://127.0.0.1:${port}/ready`)).ok);
  for (const server of ["web", "pipe"]) await until(async () => (await call(gateway, server)) === 200);
  // Each process compiles what it runs often.
  for (const server of ["web", "pipe"]) await load(gateway, server, 2500 * workers);
  return gateway;
}

/** Polls until the condition holds. @param {() => Promise<boolean>} condition */
async function until(condition) {
  for (let count = 0; count < 3000; count++) {
    if (await condition().catch(() => false)) return;
    await pause(10);
  }
  throw new Error("it did not come to be in half a minute");
}

/** Calls the echo of a server. Resolves with the status, or 0 when the connection broke. */
/** @param {Gateway} gateway @param {string} server @param {Agent} [agent] @returns {Promise<number>} */
function call({ port, agent: usual }, server, agent = usual) {
  const name = `${server}__echo`;
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": { name: "bench", version: "1.0.0" },
  };
  const params = { name, arguments: { message: "hello" }, _meta };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params });
  const headers = {
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": "tools/call",
    "mcp-name": name,
    "content-length": Buffer.byteLength(body),
  };
  return new Promise((resolve) => {
    const asked = request({ host: "127.0.0.1", port, path: "/mcp", method: "POST", headers, agent });
    asked.on("response", (answer) => {
      let text = "";
      answer.setEncoding("utf8").on("data", (piece) => (text += piece));
      answer.on("end", () => resolve(text.includes('"result"') ? (answer.statusCode ?? 0) : 500));
      answer.on("error", () => resolve(0));
    });
    asked.on("error", () => resolve(0));
    asked.end(body);
  });
}

/** Makes so many calls, as many at once as there are connections. */
/** @param {Gateway} gateway @param {string} server @param {number} count */
async function load(gateway, server, count) {
  let left = count;
  const live = async () => {
    while (left-- > 0) {
      const status = await call(gateway, server);
      if (status !== 200) throw new Error(`a call of ${server} was answered with ${status}`);
    }
  };
  await Promise.all(Array.from({ length: connections }, live));
}

/** The processes that serve: all but the server on stdio. @param {Gateway} gateway */
function treeOf({ pid }) {
  return { pid, exceptCommand: "echo-stdio.mjs" };
}

/** @param {Gateway} gateway */
function workersOf(gateway) {
  return pidsOf(treeOf(gateway)).filter((pid) => commandOf(pid).includes("serve-worker"));
}

/** @param {Map<number, Gateway>} gateways */
async function compare(gateways) {
  /** @type {{ [key: string]: number[] }} */
  const micros = {};
  /** @type {{ [key: string]: number[] }} */
  const spreads = {};
  for (let turn = 0; turn < turns; turn++) {
    for (const server of ["web", "pipe"]) {
      for (const [workers, gateway] of gateways) {
        // Connections are dealt out anew in each turn.
        gateway.agent.destroy();
        gateway.agent = new Agent({ keepAlive: true, maxSockets: connections });
        const pids = workersOf(gateway);
        const before = cpuMicros(treeOf(gateway));
        const each = pids.map((pid) => cpuMicros({ pid, exceptCommand: "echo-stdio.mjs" }));
        await load(gateway, server, callsPerTurn);
        const used = pids.map(
          (pid, index) => cpuMicros({ pid, exceptCommand: "echo-stdio.mjs" }) - (each[index] ?? 0),
        );
        (micros[`${server} ${workers}`] ??= []).push((cpuMicros(treeOf(gateway)) - before) / callsPerTurn);
        if (workers > 1 && server === "web") {
          const mean = used.reduce((sum, one) => sum + one, 0) / used.length;
          (spreads[workers] ??= []).push(Math.max(...used.map((one) => Math.abs(one - mean) / mean)));
        }
      }
    }
  }
  console.log(
    `CPU µs a call, median of ${turns} turns of ${callsPerTurn} calls on ${connections} connections\n`,
  );
  console.log(
    "| workers | HTTP server | against one process | stdio server | against one process | CPU of a worker off the mean |",
  );
  console.log("|--:|--:|--:|--:|--:|--:|");
  for (const workers of gateways.keys()) {
    const own = (/** @type {string} */ server) => median(micros[`${server} ${workers}`] ?? []);
    const ratio = (/** @type {string} */ server) => {
      const ratios = (micros[`${server} ${workers}`] ?? []).map(
        (one, turn) => one / (micros[`${server} 1`]?.[turn] ?? 1),
      );
      return `${((median(ratios) - 1) * 100).toFixed(0)} %`;
    };
    const spread = workers === 1 ? "–" : `${(median(spreads[workers] ?? []) * 100).toFixed(0)} %`;
    const cells = [
      workers,
      own("web").toFixed(0),
      ratio("web"),
      own("pipe").toFixed(0),
      ratio("pipe"),
      spread,
    ];
    console.log(`| ${cells.join(" | ")} |`);
  }
}

/** Kills a worker while calls are made, and waits until there are as many as before. */
/** @param {Gateway} gateway @param {number} workers */
async function kill(gateway, workers) {
  const ofPipe = pidsOf({ pid: gateway.pid }).filter((pid) => commandOf(pid).includes("echo-stdio.mjs"));
  const all = () => workersOf(gateway);
  // One that does not run the server on stdio.
  const owner = ofPipe.map(parentOf)[0];
  const victim = /** @type {number} */ (all().find((pid) => pid !== owner));
  const statuses = new Map();
  const over = new AbortController();
  const live = async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    while (!over.signal.aborted) {
      const status = await call(gateway, "web", agent);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }
    agent.destroy();
  };
  const callers = Array.from({ length: 16 }, live);
  await pause(300);
  const before = new Set(all());
  process.kill(victim, "SIGKILL");
  const killedAt = performance.now();
  await until(async () => all().filter((pid) => !before.has(pid)).length > 0);
  const [fresh = 0] = all().filter((pid) => !before.has(pid));
  // It serves when its CPU time grows with the calls; connections of the dead worker are made anew.
  await until(async () => isReady(fresh));
  const backMs = performance.now() - killedAt;
  await pause(300);
  over.abort();
  await Promise.all(callers);
  const told = [...statuses].map(
    ([status, count]) => `${count} × ${status === 0 ? "connection broke" : status}`,
  );
  console.log(
    `\n${workers} workers, one killed: another serves after ${backMs.toFixed(0)} ms; 16 callers saw ${told.join(", ")}`,
  );
}

/** Whether a worker has connections of its own. @param {number} pid */
async function isReady(pid) {
  const earlier = cpuMicros({ pid });
  await pause(50);
  const { length } = readFileSync(`/proc/${pid}/net/tcp`, "utf8");
  return length > 0 && earlier > 100_000 && cpuMicros({ pid }) > earlier;
}

/** @param {number} pid */
function commandOf(pid) {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } catch {
    return "";
  }
}

/** @param {number} pid */
function parentOf(pid) {
  return Number(/^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0);
}

/** @param {number[]} values */
function median(values) {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[sorted.length >> 1] ?? 0;
}
