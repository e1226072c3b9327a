// How soon a gateway lists everything when it is started again with the lists that it remembers.

import { spawn } from "node:child_process";
import { cpus } from "node:os";
import { createInterface } from "node:readline";
import { startGateway, stdioTarget } from "./gateway.mjs";
import { endAll, processorMsOf, untilNone } from "./processes.mjs";
import { listRaw } from "./raw-list.mjs";

/** @typedef {import("./world.mjs").World} World */
/**
 * @typedef {object} SecondStart
 * @property {"http" | "stdio"} transport
 * @property {readonly number[]} listedMs from the start of the gateway's process to the whole list, for each start
 * @property {readonly number[]} cpuMs how much processor time the gateway used until then
 * @property {number} idle how many of the starts began on an idle machine; the others had to share it
 * @property {readonly string[]} missing tools that were not in a list
 */

const rounds = 5;
const listLimitMs = 60_000;
const endLimitMs = 30_000;
const idleLimitMs = 60_000;
const lookMs = 500;

/** A machine is idle when its processors spend this share of the time without work. */
const idleShare = 0.75;

/**
 * Starts gateways with a filled cache folder, one after the other, and lists all tools of each as soon as it answers. The client
 * is bare, so that only the gateway is measured.
 *
 * @param {World} world
 * @param {{ config: string, cache: string, wanted: readonly string[], progress: (text: string) => void }} options
 * @returns {Promise<SecondStart[]>}
 */
export async function measureSecondStarts(world, { config, cache, wanted, progress }) {
  const results = [];
  for (const [transport, list] of /** @type {const} */ ([
    ["http", listOverHttp],
    ["stdio", listOverStdio],
  ])) {
    const listedMs = [];
    const cpuMs = [];
    let idle = 0;
    const missing = new Set();
    for (let round = 1; round <= rounds; round += 1) {
      if (await untilIdle()) idle += 1;
      const { names, ms, usedMs } = await list(world, { config, cache, name: `again-${transport}-${round}` });
      const listed = new Set(names);
      for (const name of wanted) if (!listed.has(name)) missing.add(name);
      listedMs.push(ms);
      cpuMs.push(usedMs);
      await untilNone(world, endLimitMs);
      endAll(world);
    }
    progress(`second start over ${transport}: everything is listed after ${listedMs.join(", ")} ms`);
    results.push({ transport, listedMs, cpuMs, idle, missing: [...missing] });
  }
  return results;
}

/** Waits for an idle machine, but only for so long. Resolves with whether it is idle. */
async function untilIdle() {
  const deadline = performance.now() + idleLimitMs;
  for (;;) {
    const before = readTimes();
    await new Promise((resolve) => setTimeout(resolve, lookMs));
    const after = readTimes();
    if (after.idle - before.idle >= idleShare * (after.all - before.all)) return true;
    if (performance.now() > deadline) return false;
  }
}

/** What the processors did so far, in milliseconds. */
function readTimes() {
  const times = cpus().flatMap(({ times }) => times);
  const idle = times.reduce((sum, each) => sum + each.idle, 0);
  const busy = times.reduce((sum, { user, nice, sys, irq }) => sum + user + nice + sys + irq, 0);
  return { idle, all: idle + busy };
}

/** @param {readonly number[]} values */
export function medianOf(values) {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

/** @typedef {{ config: string, cache: string, name: string }} GatewayOptions */

/** @param {World} world @param {GatewayOptions} options */
async function listOverHttp(world, options) {
  const begun = performance.now();
  const gateway = await startGateway(world, options);
  try {
    const { names } = await listRaw(gateway.url);
    return { names, ms: Math.round(performance.now() - begun), usedMs: processorMsOf(gateway.pid) };
  } finally {
    await gateway.stop();
  }
}

/** @param {World} world @param {GatewayOptions} options */
async function listOverStdio(world, options) {
  const { command, args, env, cwd } = stdioTarget(world, options);
  const begun = performance.now();
  const child = spawn(command, args, { env, cwd, stdio: ["pipe", "pipe", "ignore"] });
  const ended = new Promise((resolve) => child.on("close", resolve));
  const signal = AbortSignal.timeout(listLimitMs);
  signal.addEventListener("abort", () => child.kill("SIGKILL"));
  try {
    const names = await listPages(child);
    return { names, ms: Math.round(performance.now() - begun), usedMs: processorMsOf(child.pid) };
  } finally {
    child.stdin.end();
    await ended;
  }
}

/** @param {import("node:child_process").ChildProcessByStdio<import("node:stream").Writable, import("node:stream").Readable, null>} child */
async function listPages(child) {
  /** @param {object} message */
  const send = (message) => child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  const clientInfo = { name: "field", version: "1.0.0" };
  send({
    id: 0,
    method: "initialize",
    params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo },
  });
  send({ method: "notifications/initialized" });
  send({ id: 1, method: "tools/list", params: {} });
  /** @type {string[]} */
  const names = [];
  let lastId = 1;
  for await (const line of createInterface({ input: child.stdout })) {
    const { id, result } = JSON.parse(line);
    if (id !== lastId) continue;
    names.push(...result.tools.map((/** @type {{ name: string }} */ { name }) => name));
    if (result.nextCursor === undefined) return names;
    lastId += 1;
    send({ id: lastId, method: "tools/list", params: { cursor: result.nextCursor } });
  }
  throw new Error("the gateway ended before it listed everything");
}
