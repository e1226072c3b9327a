// `npm run proof -- bench workers`: what `serve --workers N` costs and how it spreads, against one process, in turns of one run.
//
//   CPU a call     user and system time of all processes of the gateway, its primary included: of a call to a server over HTTP, and of
//                  one to a server on stdio, which one worker runs for all; that has the hop between workers in it
//   spread         how many connections each worker holds, by the tables of the kernel
//   loss           how long until another worker answers calls in place of one that was killed, and what callers saw meanwhile
//
// The CPU time of a call is measured in two ways, because it depends on more than on workers:
//
//   one load, cold    64 connections and 4000 calls a turn for every gateway, after 2500 calls for each process to warm up. With four
//                     workers, each process gets a quarter of that load, and pays for it: V8 is still compiling, on threads whose time
//                     counts, when the one process has long finished, because each process compiles for itself; and a process that
//                     finds fewer messages each time it wakes makes more system calls for each of them.
//   equal load, warm  the same load for each process: 32 connections and 2500 calls, after each has served so many calls that
//                     compiling is over. Four processes on two cores still take the caches from each other, with workers or without. So
//                     N workers are also compared with N gateways of one process each, side by side, under the same load at the same
//                     time: the only difference is `--workers`. What it costs is in that column: dealing out connections, the facts that
//                     workers share, and the hop to a stdio server, of which each gateway of one process has its own.
//
// Beside the CPU time stand its reasons: how often a process went to sleep for each call, and how much of the CPU time
// the threads took that compile and collect garbage.
//
// CPU time does not change with the load of the machine as wall time does. Linux only.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { Agent } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { connectionsOf, holderOf } from "./lib/connections.mjs";
import { freePort } from "./lib/free-port.mjs";
import { cpuMicros, requireProc } from "./lib/processes.mjs";
import { median, ratios } from "./lib/statistics.mjs";
import {
  callOnce,
  helperMicros,
  makeCalls,
  servingPids,
  sleepsOf,
  startGateway,
  stdioOwner,
  stdioServer,
  until,
} from "./lib/worker-gateway.mjs";

/** @typedef {import("./lib/worker-gateway.mjs").Gateway} Gateway */
/** @typedef {{ micros: number, owner: number, sleeps: number, helpers: number, dealing: number, unevenness: number }} Figure of one turn, for each call; `dealing` for each connection */
/** @typedef {import("./lib/worker-gateway.mjs").Load} Load */
/** @typedef {{ title: string, warmUp: number, load: (workers: number) => Load, isBeside: boolean }} Shape */
/** What is loaded at the same time. */
/** @typedef {{ name: string, gateways: Gateway[] }} Contestant */

const turns = Number(process.argv[2] ?? 5);
const servers = ["web", "pipe"];

/** @type {Shape[]} */
const shapes = [
  {
    title: "One load for all, cold: 64 connections, 4000 calls a turn",
    warmUp: 2500,
    load: () => ({ connections: 64, calls: 4000 }),
    isBeside: false,
  },
  {
    title: "Equal load for each process, warm: 32 connections, 2500 calls a turn for each",
    warmUp: 6000,
    load: (workers) => ({ connections: 32 * workers, calls: 2500 * workers }),
    isBeside: true,
  },
];

requireProc();
const folder = mkdtempSync(join(tmpdir(), "junctor-bench-"));
const upstream = (/** @type {string} */ name) =>
  fileURLToPath(new URL(`systems/upstreams/${name}`, import.meta.url));
/** With 1, 2 and 4 workers. @type {Gateway[]} */
const gateways = [];
/** Of one process each, the first of `gateways` among them. @type {Gateway[]} */
const singles = [];
const webPort = await freePort();
const web = spawn(process.execPath, [upstream("echo-http.mjs"), String(webPort)], { stdio: "ignore" });
try {
  const config = join(folder, "mcp.json");
  const mcpServers = {
    web: { type: "http", url: `http://127.0.0.1:${webPort}/mcp` },
    pipe: { command: process.execPath, args: [upstream(stdioServer)] },
  };
  writeFileSync(config, JSON.stringify({ mcpServers, junctor: { admin: false } }), { mode: 0o600 });
  for (const workers of [1, 2, 4]) gateways.push(await startGateway(workers, config, folder));
  singles.push(...gateways.slice(0, 1));
  for (const shape of shapes) {
    while (shape.isBeside && singles.length < 4) singles.push(await startGateway(1, config, folder));
    await compare(shape);
  }
  for (const pauseMs of [20, 0]) for (const gateway of gateways.slice(1)) await lose(gateway, pauseMs);
} finally {
  for (const gateway of [...gateways, ...singles]) gateway.stop();
  web.kill();
  rmSync(folder, { recursive: true, force: true });
}

/** @param {Shape} shape */
async function compare({ title, warmUp, load, isBeside }) {
  /** @type {Contestant[]} */
  const contestants = gateways.map((gateway) => ({ name: `${gateway.workers}`, gateways: [gateway] }));
  if (isBeside)
    for (const count of [2, 4])
      contestants.push({ name: `${count} apart`, gateways: singles.slice(0, count) });
  for (const server of servers)
    for (const gateway of new Set([...gateways, ...singles]))
      await makeCalls(gateway, server, { connections: 64, calls: warmUp * gateway.workers });
  /** @type {Map<string, Figure[]>} */
  const figures = new Map();
  for (let turn = 0; turn < turns; turn++) {
    for (const server of servers) {
      for (const contestant of contestants) {
        const key = `${server} ${contestant.name}`;
        const figure = await takeTurn(contestant, server, load);
        figures.set(key, [...(figures.get(key) ?? []), figure]);
        // For those who wonder how much turns differ.
        console.error(
          `${(performance.now() / 1000).toFixed(0)} s, turn ${turn + 1}, ${key}: ${figure.micros.toFixed(0)} µs`,
        );
      }
    }
  }
  /** @param {string} server @param {string} name @param {keyof Figure} key */
  const of = (server, name, key) => (figures.get(`${server} ${name}`) ?? []).map((figure) => figure[key]);
  /** @param {string} server @param {string} name @param {string} other */
  const more = (server, name, other) => {
    const found = ratios(of(server, name, "micros"), of(server, other, "micros"));
    return name === other || found.length === 0 ? "" : percent(median(found) - 1, "+");
  };
  console.log(`\n${title}. Medians of ${turns} turns, each compared with the turn beside it.\n`);
  console.log(
    "| processes | CPU of a call to an HTTP server | against one process | against as many apart | compiling and collecting | sleeps a call | to a stdio server | against one process | against as many apart | connections off the mean |",
  );
  console.log("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
  for (const { name, gateways: own } of contestants) {
    const workers = own.length > 1 ? 1 : (own[0]?.workers ?? 1);
    const apart = `${name} apart`;
    const cells = [
      own.length > 1 ? `${own.length} gateways apart` : workers > 1 ? `${workers} workers` : "one process",
      `${median(of("web", name, "micros")).toFixed(0)} µs`,
      more("web", name, "1"),
      more("web", name, apart),
      `${median(of("web", name, "helpers")).toFixed(0)} µs`,
      median(of("web", name, "sleeps")).toFixed(2),
      `${median(of("pipe", name, "micros")).toFixed(0)} µs`,
      more("pipe", name, "1"),
      more("pipe", name, apart),
      workers === 1
        ? ""
        : percent(Math.max(...of("web", name, "unevenness"), ...of("pipe", name, "unevenness"))),
    ];
    console.log(`| ${cells.join(" | ")} |`);
  }
  if (!isBeside) return;
  for (const { workers } of gateways.slice(1)) {
    const alone = of("pipe", `${workers} apart`, "micros");
    const [all, owner] = [of("pipe", `${workers}`, "micros"), of("pipe", `${workers}`, "owner")];
    // The owner serves its own connections like one process. All calls of the others take the hop.
    const hopping = 1 - 1 / workers;
    const hop = median(all.map((micros, turn) => (micros - (alone[turn] ?? NaN)) / hopping));
    const atOwner = median(owner.map((micros, turn) => (micros - (alone[turn] ?? NaN) / workers) / hopping));
    console.log(
      `\n${workers} workers: the hop to the owner of a stdio server adds ${hop.toFixed(0)} µs to a call; a call that comes by it costs the owner ${atOwner.toFixed(0)} µs; dealing out a connection costs the primary ${median(of("web", `${workers}`, "dealing")).toFixed(0)} µs`,
    );
  }
}

/**
 * Connections are made anew in each turn, and their making counts.
 *
 * @param {Contestant} contestant
 * @param {string} server
 * @param {(workers: number) => Load} load
 * @returns {Promise<Figure>}
 */
async function takeTurn({ gateways: own }, server, load) {
  const pids = own.flatMap((gateway) => servingPids(gateway));
  const [first] = own;
  const owner = first && stdioOwner(first);
  const read = () => ({
    micros: own.reduce((sum, { pid }) => sum + cpuMicros({ pid, exceptCommand: stdioServer }), 0),
    owner: owner === undefined ? NaN : cpuMicros({ pid: owner, exceptCommand: stdioServer }),
    serving: pids.reduce((sum, pid) => sum + cpuMicros({ pid, exceptCommand: stdioServer }), 0),
    sleeps: sleepsOf(pids),
    helpers: pids.reduce((sum, pid) => sum + helperMicros(pid), 0),
  });
  let unevenness = 0;
  const before = read();
  const loads = own.map(({ workers }) => load(workers));
  await Promise.all(
    own.map((gateway) =>
      makeCalls(gateway, server, load(gateway.workers), () => {
        const held = servingPids(gateway).map((pid) => connectionsOf(pid, gateway.port));
        const mean = held.reduce((sum, one) => sum + one, 0) / held.length;
        unevenness = Math.max(...held.map((one) => Math.abs(one - mean) / mean));
      }),
    ),
  );
  const after = read();
  // The first call of each connection comes on top.
  const connections = loads.reduce((sum, each) => sum + each.connections, 0);
  const calls = loads.reduce((sum, each) => sum + each.calls, connections);
  return {
    micros: (after.micros - before.micros) / calls,
    owner: (after.owner - before.owner) / calls,
    sleeps: (after.sleeps - before.sleeps) / calls,
    helpers: (after.helpers - before.helpers) / calls,
    // Of the primary, which does little else meanwhile.
    dealing: (after.micros - after.serving - before.micros + before.serving) / connections,
    unevenness,
  };
}

/**
 * Kills a worker while 16 callers make calls, and waits until another one has answered a call in its place. Callers without a pause
 * keep all cores busy, which the new worker has to share.
 * @param {Gateway} gateway @param {number} pauseMs
 */
async function lose(gateway, pauseMs) {
  const before = servingPids(gateway);
  // One that does not run the server on stdio.
  const owner = stdioOwner(gateway);
  const victim = /** @type {number} */ (before.find((pid) => pid !== owner));
  /** @type {Map<number, number>} */
  const statuses = new Map();
  const over = new AbortController();
  const live = async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    while (!over.signal.aborted) {
      const { status } = await callOnce(gateway, "web", agent);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      if (pauseMs > 0) await pause(pauseMs);
    }
    agent.destroy();
  };
  const callers = Array.from({ length: 16 }, live);
  await until(async () => (statuses.get(200) ?? 0) > 1000);
  const held = connectionsOf(victim, gateway.port);
  process.kill(victim, "SIGKILL");
  const killedAt = performance.now();
  await until(async () => isAnsweredByOther(gateway, before));
  const backMs = performance.now() - killedAt;
  await pause(300);
  over.abort();
  await Promise.all(callers);
  const told = [...statuses].map(
    ([status, count]) => `${count} × ${status === 0 ? "connection broke" : status}`,
  );
  console.log(
    `\n${gateway.workers} workers, callers that pause for ${pauseMs} ms, one worker killed that held ${held} of 16 connections: a new one answers after ${backMs.toFixed(0)} ms; the callers saw ${told.join(", ")}`,
  );
}

/**
 * Makes a call on a connection of its own, and tells whether a worker answered it that was not there before.
 * @param {Gateway} gateway @param {readonly number[]} before
 */
async function isAnsweredByOther(gateway, before) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  try {
    const { status, clientPort } = await callOnce(gateway, "web", agent);
    const fresh = servingPids(gateway).filter((pid) => !before.includes(pid));
    return status === 200 && holderOf(fresh, gateway.port, clientPort) !== undefined;
  } finally {
    agent.destroy();
  }
}

/** @param {number} share @param {string} [sign] of what is not less than nothing */
function percent(share, sign = "") {
  const rounded = Math.round(share * 100);
  return `${rounded < 0 ? "−" : sign}${Math.abs(rounded)} %`;
}
