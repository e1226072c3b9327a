// What a server lists by itself, without a gateway and without any validation: the yardstick for what must not get lost.

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

/** @typedef {{ names: string[], ms: number, problem?: string }} DirectList */

/**
 * Starts a server, lists its tools, and ends it with its process group.
 *
 * @param {{ command: string, args?: string[], env?: Record<string, string> }} server
 * @param {{ env: Record<string, string>, cwd: string, limitMs: number }} options
 * @returns {Promise<DirectList>}
 */
export async function listDirectly({ command, args = [], env = {} }, options) {
  const begun = performance.now();
  const child = spawn(command, args, {
    cwd: options.cwd,
    env: { ...options.env, ...env },
    detached: true,
    stdio: ["pipe", "pipe", "ignore"],
  });
  const ended = new Promise((resolve) => child.on("close", resolve));
  // Writing to a server that has ended fails; that it has ended is told by its output.
  child.stdin.on("error", () => {});
  const signal = AbortSignal.timeout(options.limitMs);
  try {
    const names = await converse(child, signal);
    return { names, ms: Math.round(performance.now() - begun) };
  } catch (error) {
    const problem = signal.aborted ? `no list within ${options.limitMs} ms` : String(error);
    return { names: [], ms: Math.round(performance.now() - begun), problem };
  } finally {
    if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, "SIGKILL");
    await ended;
  }
}

/** @param {import("node:child_process").ChildProcessByStdio<import("node:stream").Writable, import("node:stream").Readable, null>} child @param {AbortSignal} signal */
async function converse(child, signal) {
  /** @param {object} message */
  const send = (message) => child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  const clientInfo = { name: "field", version: "1.0.0" };
  const names = [];
  send({
    id: 0,
    method: "initialize",
    params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo },
  });
  for await (const line of createInterface({ input: child.stdout, signal })) {
    const message = parse(line);
    if (message.method !== undefined && message.id !== undefined)
      send({ id: message.id, error: { code: -32601, message: "not here" } });
    else if (message.error !== undefined) throw new Error(message.error.message);
    else if (message.id === 0) {
      send({ method: "notifications/initialized" });
      send({ id: 1, method: "tools/list", params: {} });
    } else if (message.id >= 1) {
      names.push(...message.result.tools.map((/** @type {{ name: string }} */ { name }) => name));
      const { nextCursor } = message.result;
      if (nextCursor === undefined) return names;
      send({ id: message.id + 1, method: "tools/list", params: { cursor: nextCursor } });
    }
  }
  throw new Error(signal.aborted ? "too late" : "it ended before it listed its tools");
}

/** Lines that are no messages are passed over. @param {string} line */
function parse(line) {
  try {
    return JSON.parse(line);
  } catch {
    return {};
  }
}
