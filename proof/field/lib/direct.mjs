// What a server lists and answers by itself, without a gateway and without any validation: the yardstick for what must not
// get lost.

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { toText } from "../clients/contract.mjs";

/** @typedef {import("../clients/contract.mjs").Call} Call */
/** @typedef {{ names: string[], ms: number, problem?: string }} DirectVisit `problem`: no list, or a call without the expected result */

/**
 * Starts a server, lists its tools, makes its calls, and ends it with its process group.
 *
 * @param {{ command: string, args?: string[], env?: Record<string, string | number> }} server
 * @param {{ env: Record<string, string>, cwd: string, calls: readonly Call[], limitMs: number }} options
 * @returns {Promise<DirectVisit>}
 */
export async function visitDirectly({ command, args = [], env = {} }, options) {
  const begun = performance.now();
  const child = spawn(command, args, {
    cwd: options.cwd,
    env: { ...options.env, ...withFolder(env, options.cwd) },
    detached: true,
    stdio: ["pipe", "pipe", "ignore"],
  });
  const ended = new Promise((resolve) => child.on("close", resolve));
  // Writing to a server that has ended fails; that it has ended is told by its output.
  child.stdin.on("error", () => {});
  const signal = AbortSignal.timeout(options.limitMs);
  /** @type {string[]} */
  const names = [];
  /** @type {string | undefined} */
  let problem;
  try {
    await converse(child, names, options.calls, signal);
  } catch (error) {
    problem = signal.aborted ? `by itself it was not done within ${options.limitMs} ms` : String(error);
  } finally {
    if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, "SIGKILL");
    await ended;
  }
  const ms = Math.round(performance.now() - begun);
  return problem === undefined ? { names, ms } : { names, ms, problem };
}

/**
 * @param {import("node:child_process").ChildProcessByStdio<import("node:stream").Writable, import("node:stream").Readable, null>} child
 * @param {string[]} names gets the names of the tools
 * @param {readonly Call[]} calls
 * @param {AbortSignal} signal
 */
async function converse(child, names, calls, signal) {
  /** @param {object} message */
  const send = (message) => child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  const lines = createInterface({ input: child.stdout, signal })[Symbol.asyncIterator]();
  let lastId = -1;
  /** @param {string} method @param {object} params */
  const ask = async (method, params) => {
    lastId += 1;
    send({ id: lastId, method, params });
    for (;;) {
      const { done, value } = await lines.next();
      if (done === true) throw new Error("by itself it ended before it answered");
      const message = parse(value);
      if (message.method !== undefined && message.id !== undefined)
        send({ id: message.id, error: { code: -32601, message: "not here" } });
      else if (message.id === lastId && message.error !== undefined) throw new Error(message.error.message);
      else if (message.id === lastId) return message.result;
    }
  };

  const clientInfo = { name: "field", version: "1.0.0" };
  // What the gateway declares to a process that all callers share: some servers list more tools for clients that can do more.
  const capabilities = { elicitation: { form: {}, url: {} }, sampling: { tools: {} }, roots: {} };
  await ask("initialize", { protocolVersion: "2025-11-25", capabilities, clientInfo });
  send({ method: "notifications/initialized" });
  for (let cursor; ;) {
    const page = await ask("tools/list", cursor === undefined ? {} : { cursor });
    names.push(...page.tools.filter(isForModel).map((/** @type {{ name: string }} */ { name }) => name));
    cursor = page.nextCursor;
    if (cursor === undefined) break;
  }
  for (const { tool, arguments: given, expect } of calls) {
    const name = tool.slice(tool.indexOf("__") + 2);
    const result = await ask("tools/call", { name, arguments: given });
    const text = toText(result);
    if (result.isError === true || !text.includes(expect))
      throw new Error(`by itself ${name} gives no result with "${expect}": ${text.slice(0, 300)}`);
  }
}

/** Tools for views alone are kept from clients without views, such as ours. @param {any} tool */
function isForModel(tool) {
  return tool._meta?.ui?.visibility?.includes("model") ?? true;
}

/** The one variable of the config that the gateway fills in. @param {Record<string, string | number>} env @param {string} folder */
function withFolder(env, folder) {
  return Object.fromEntries(
    Object.entries(env).map(([name, value]) => [
      name,
      String(value).replaceAll("${workspaceFolder}", folder),
    ]),
  );
}

/** Lines that are no messages are passed over. @param {string} line */
function parse(line) {
  try {
    return JSON.parse(line);
  } catch {
    return {};
  }
}
