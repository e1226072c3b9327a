// `npm run proof -- bench daemon`: what five clients with twelve servers cost, with one daemon and with a gateway each.
//
//   memory        private memory of all processes, as the system counts it (Linux)
//   first answer  from the start of the process to the answer to the handshake, alternating
//   call          the time of one call, alternating between a front, a gateway of its own and the daemon's socket itself, in the
//                 same run; and the time that the front had a processor for each call, which other programs do not change

import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { joinDaemon } from "./lib/daemon-socket.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
const main = join(root, "packages/junctor/dist/cli/main.js");
const clients = 5;
const calls = 2000;
const starts = 11;

if (process.platform !== "linux") {
  console.error("This bench reads /proc, which only Linux has.");
  process.exit(2);
}

const home = mkdtempSync(join(tmpdir(), "jb-"));
const config = join(home, ".junctor", "junctor.json");
const env = {
  ...process.env,
  HOME: home,
  XDG_RUNTIME_DIR: "",
  XDG_STATE_HOME: join(home, "state"),
  XDG_CACHE_HOME: join(home, "cache"),
};

function writeConfig() {
  const server = (name) =>
    join(root, "node_modules/@modelcontextprotocol", `server-${name}`, "dist/index.js");
  const servers = [];
  for (let index = 1; index <= 4; index++) {
    servers.push([`everything${index}`, { command: process.execPath, args: [server("everything")] }]);
    servers.push([
      `memory${index}`,
      {
        command: process.execPath,
        args: [server("memory")],
        env: { MEMORY_FILE_PATH: join(home, `m${index}`) },
      },
    ]);
    servers.push([`files${index}`, { command: process.execPath, args: [server("filesystem"), home] }]);
  }
  mkdirSync(dirname(config), { recursive: true, mode: 0o700 });
  const junctor = { daemon: { idleMs: 1000 }, log: { level: "warn" } };
  writeFileSync(config, JSON.stringify({ mcpServers: Object.fromEntries(servers), junctor }), {
    mode: 0o600,
  });
  return servers.length;
}

/** One client on the standard streams of a process. */
function open(args) {
  const child = spawn(process.execPath, [main, ...args], {
    env,
    cwd: home,
    stdio: ["pipe", "pipe", "ignore"],
  });
  const close = () => new Promise((resolve) => (child.once("close", resolve), child.stdin.end()));
  return { child, close, ...speak(child.stdout, child.stdin) };
}

/** One client on the daemon's socket. */
async function openDirect() {
  const socket = await joinDaemon(join(home, ".junctor", "run"));
  const close = () => new Promise((resolve) => (socket.once("close", resolve), socket.end()));
  return { close, ...speak(socket, socket) };
}

function speak(input, output) {
  const waiting = new Map();
  let ids = 0;
  createInterface({ input }).on("line", (line) => {
    if (line === "") return;
    const { id, method } = JSON.parse(line);
    if (method !== undefined || !waiting.has(id)) return;
    waiting.get(id)(line);
    waiting.delete(id);
  });
  const request = (method, params) =>
    new Promise((resolve) => {
      const id = ++ids;
      waiting.set(id, resolve);
      output.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`);
    });
  const shake = () =>
    request("initialize", {
      protocolVersion: "2025-11-25",
      capabilities: {},
      clientInfo: { name: "bench", version: "1" },
    });
  const call = () => request("tools/call", { name: "everything1__echo", arguments: { message: "hi" } });
  return { request, shake, call };
}

const ways = {
  "attach (one daemon)": ["attach", "--client", "bench"],
  "serve --stdio (each its own)": ["serve", "--stdio", "--config", config],
};

function processes() {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((pid) => read(pid, "environ").includes(`HOME=${home}\0`) || read(pid, "cmdline").includes(home));
}

function read(pid, name) {
  try {
    return readFileSync(`/proc/${pid}/${name}`, "utf8");
  } catch {
    return "";
  }
}

function privateMb(pid) {
  const text = read(pid, "smaps_rollup");
  const kb = [...text.matchAll(/^Private_(?:Clean|Dirty):\s+(\d+)/gm)].reduce(
    (sum, [, each]) => sum + Number(each),
    0,
  );
  return kb / 1024;
}

const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];

/** On a busy machine the median is mostly time in which others had the processor. */
const fastest = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 10)];

const round3 = (value) => Math.round(value * 1000) / 1000;

async function untilNone() {
  while (processes().length > 0) await new Promise((resolve) => setTimeout(resolve, 100));
}

async function measureMemory(args, servers) {
  const open5 = Array.from({ length: clients }, () => open(args));
  await Promise.all(open5.map((client) => client.shake()));
  // All servers are up when their tools are listed.
  for (const client of open5)
    for (;;) {
      const { result } = JSON.parse(await client.request("tools/list", {}));
      if (new Set(result.tools.map(({ name }) => name.split("__")[0])).size === servers) break;
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  const all = processes();
  const isFront = (pid) => open5.some(({ child }) => String(child.pid) === pid);
  const fronts = all.filter(isFront);
  const row = {
    processes: all.length,
    servers: all.filter((pid) => read(pid, "cmdline").includes("server-")).length,
    "private MB": Math.round(all.reduce((sum, pid) => sum + privateMb(pid), 0)),
    "MB of one front": Math.round(median(fronts.map(privateMb)) * 10) / 10,
  };
  await Promise.all(open5.map((client) => client.close()));
  await untilNone();
  return row;
}

async function measureStarts() {
  const keeper = open(ways["attach (one daemon)"]);
  await keeper.shake();
  const times = Object.fromEntries(Object.keys(ways).map((name) => [name, []]));
  for (let round = 0; round < starts; round++)
    for (const [name, args] of Object.entries(ways)) {
      const begun = performance.now();
      const client = open(args);
      await client.shake();
      times[name].push(performance.now() - begun);
      client.child.kill("SIGKILL");
      await new Promise((resolve) => client.child.once("close", resolve));
    }
  await keeper.close();
  await untilNone();
  return times;
}

async function measureCalls() {
  const [attach, serve] = Object.values(ways).map(open);
  await attach.shake();
  const each = { direct: await openDirect(), attach, serve };
  const times = Object.fromEntries(Object.keys(each).map((name) => [name, []]));
  for (const client of Object.values(each)) {
    await client.shake();
    for (let warm = 0; warm < 200; warm++) await client.call();
  }
  const before = readRan(attach.child.pid);
  for (let round = 0; round < calls; round++)
    for (const [name, client] of Object.entries(each)) {
      const begun = performance.now();
      await client.call();
      times[name].push(performance.now() - begun);
    }
  const frontMs = (readRan(attach.child.pid) - before) / calls;
  await Promise.all(Object.values(each).map((client) => client.close()));
  await untilNone();
  return { times, frontMs };
}

/** How long the main thread of a process has had a processor. */
function readRan(pid) {
  return Number(read(pid, "schedstat").split(" ")[0]) / 1e6;
}

try {
  const servers = writeConfig();
  const rows = {};
  for (const [name, args] of Object.entries(ways)) rows[name] = await measureMemory(args, servers);
  const started = await measureStarts();
  const { times, frontMs } = await measureCalls();
  for (const name of Object.keys(ways)) rows[name]["first answer ms"] = Math.round(median(started[name]));
  console.log(
    `${clients} clients, ${servers} servers, Node ${process.version}, load ${loadavg()[0].toFixed(1)}`,
  );
  console.table(rows);
  const shown = Object.entries(times).map(([name, all]) => [
    name,
    { "call ms (median)": round3(median(all)), "(fastest tenth)": round3(fastest(all)) },
  ]);
  console.table(Object.fromEntries(shown));
  const adds = (of) => (of(times.attach) - of(times.direct)).toFixed(3);
  console.log(
    `A front adds ${adds(median)} ms to a call (median), ${adds(fastest)} ms to the fastest tenth; it has a processor for ${frontMs.toFixed(3)} ms of it. Left behind: ${processes().length} processes`,
  );
} finally {
  rmSync(home, { recursive: true, force: true });
}
