// The ways a system is put under load.

import { freePort } from "./free-port.mjs";
import { peakBytes } from "./processes.mjs";
import { System } from "./system.mjs";

/** @typedef {import("./contest.mjs").Subject} Subject */
/** @typedef {import("./load.mjs").Load} Load */
/** @typedef {import("../load/envelope.mjs").Era} Era */
/** @typedef {import("../load/scenarios.mjs").Scenario} Scenario */
/** @typedef {{ args: string[], env?: Record<string, string>, path?: string, transport?: "http" | "sse", exceptCommand?: string }} Launch */

let lastKey = 0;

/**
 * A system that listens on HTTP.
 *
 * @param {Load} load
 * @param {(port: number) => Launch | Promise<Launch>} launch
 * @param {{ era: Era, scenario: Scenario, connections: number, minTools?: number }} options
 * @returns {Promise<Subject & { port: number, pid: number, key: string, answerOnce(): Promise<void> }>}
 */
export async function openHttpSubject(load, launch, { era, scenario, connections, minTools = 1 }) {
  const port = await freePort();
  const { args, env = {}, path = "/mcp", transport = "http", exceptCommand } = await launch(port);
  const system = new System({ args, env, port });
  const key = `http ${++lastKey}`;
  const tree = { pid: system.pid, exceptCommand };
  try {
    await system.listening();
    await load.open(key, { transport, port, path, era, scenario, minTools });
  } catch (error) {
    await system.stop();
    throw error;
  }
  return {
    port,
    pid: system.pid,
    key,
    turn: (limit) => load.turn(key, { connections, ...limit, tree }),
    answerOnce: () => load.once(key),
    peakBytes: () => peakBytes(tree),
    async close() {
      await load.close(key);
      await system.stop();
    },
  };
}

/**
 * A server on the pipes of the load process.
 *
 * @param {Load} load
 * @param {string[]} args
 * @param {{ era: Era, inFlight: number }} options
 * @returns {Promise<Subject & { answerOnce(): Promise<void> }>}
 */
export async function openStdioSubject(load, args, { era, inFlight }) {
  const key = `stdio ${++lastKey}`;
  const pid = await load.open(key, { transport: "stdio", command: process.execPath, args, era });
  return {
    turn: (limit) => load.turn(key, { connections: inFlight, ...limit, tree: { pid } }),
    answerOnce: () => load.once(key),
    peakBytes: () => peakBytes({ pid }),
    close: () => load.close(key),
  };
}
