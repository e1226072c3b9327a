import { spawn } from "node:child_process";
import { openSync, readFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { freePort } from "../../bench/lib/free-port.mjs";

/** @typedef {import("./world.mjs").World} World */
/** @typedef {{ url: string, pid: number | undefined, log: string, begunAt: number, exited: Promise<string>, stop(): Promise<string | undefined> }} RunningGateway */

export const program = fileURLToPath(new URL("../../../packages/junctor/dist/cli/main.js", import.meta.url));
const openLimitMs = 60_000;
const stopLimitMs = 40_000;

/**
 * Starts `junctor serve` and resolves when its port is open, which is before its servers are up.
 *
 * @param {World} world
 * @param {{ config: string, cache: string, name: string }} options `cache` names the folder of remembered lists, `name` the log
 * @returns {Promise<RunningGateway>}
 */
export async function startGateway(world, { config, cache, name }) {
  const port = await freePort();
  const log = join(world.run, `${name}.log`);
  const output = openSync(log, "a");
  const args = [program, "serve", "--config", config, "--port", String(port)];
  const begunAt = Date.now();
  const child = spawn(process.execPath, args, {
    cwd: world.desk,
    env: world.env(cache),
    stdio: ["ignore", output, output],
  });
  const exited = new Promise((resolve) => {
    child.on("exit", (code, signal) => resolve(`the gateway ended with ${signal ?? code}`));
  });
  await Promise.race([
    untilOpen(port),
    exited.then((how) => {
      throw new Error(`${how}: ${readFileSync(log, "utf8").slice(-2000)}`);
    }),
  ]);
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    pid: child.pid,
    log,
    begunAt,
    exited,
    // What was wrong with the end, if something was.
    stop: async () => {
      child.kill("SIGTERM");
      const timer = setTimeout(() => child.kill("SIGKILL"), stopLimitMs);
      const how = await exited;
      clearTimeout(timer);
      return how.endsWith("with 0") || how.endsWith("with SIGTERM") ? undefined : how;
    },
  };
}

/**
 * The command that a client starts a gateway over stdio with. A shell sends its log to a file and becomes the gateway.
 *
 * @param {World} world
 * @param {{ config: string, cache: string, name: string }} options
 * @returns {Extract<import("../clients/contract.mjs").Target, { transport: "stdio" }>}
 */
export function stdioTarget(world, { config, cache, name }) {
  const words = [process.execPath, program, "serve", "--config", config, "--stdio"];
  const log = join(world.run, `${name}.log`);
  return {
    transport: "stdio",
    command: "/bin/sh",
    args: ["-c", `exec "$@" 2>>'${log}'`, "sh", ...words],
    env: world.env(cache),
    cwd: world.desk,
  };
}

/**
 * When each server came up, and how often it went down before, by the log of a gateway.
 *
 * @param {RunningGateway} gateway
 */
export function readStarts({ log, begunAt }) {
  /** @type {Map<string, { upMs?: number, downs: number }>} */
  const starts = new Map();
  for (const line of readFileSync(log, "utf8").split("\n")) {
    const { time, server, msg } = parse(line);
    if (server === undefined || msg === undefined) continue;
    const start = starts.get(server) ?? { downs: 0 };
    starts.set(server, start);
    if (msg === `${server} is up`) start.upMs ??= Date.parse(time) - begunAt;
    else if (msg === `${server} is down` && start.upMs === undefined) start.downs += 1;
  }
  return starts;
}

/** @param {string} line */
function parse(line) {
  try {
    return JSON.parse(line);
  } catch {
    return {};
  }
}

/** @param {number} port */
async function untilOpen(port) {
  const deadline = performance.now() + openLimitMs;
  while (!(await isOpen(port))) {
    if (performance.now() > deadline)
      throw new Error(`the gateway did not open port ${port} within ${openLimitMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** @param {number} port @returns {Promise<boolean>} */
function isOpen(port) {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => resolve(true)).on("error", () => resolve(false));
    socket.on("connect", () => socket.destroy());
  });
}
