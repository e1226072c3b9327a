// What every client program of this folder does: it reaches the gateway, lists all tools, makes the calls of its task, hangs up, and
// prints one JSON line. A program says how its library does these four; the rest is here.
//
//   node clients/NAME.mjs TASK.json
//
// The task is a JSON file:
//   target     { "transport": "http", "url" } or { "transport": "stdio", "command", "args", "env", "cwd" }
//   wanted     names of the tools that must be listed
//   calls      [{ "tool", "arguments", "expect" }]; `expect` is a text that the result must contain
//   patienceMs how long to list again when the first list was not complete
//   callMs     how long one call may take

import { readFileSync } from "node:fs";

/**
 * @typedef {{ transport: "http", url: string } | { transport: "stdio", command: string, args: string[], env: Record<string, string>, cwd: string }} Target
 * @typedef {{ tool: string, arguments: Record<string, unknown>, expect: string }} Call
 * @typedef {{ target: Target, wanted: string[], calls: Call[], patienceMs: number, callMs: number }} Task
 * @typedef {{ listsOnce?: boolean, list(): Promise<string[]>, call(tool: string, args: Record<string, unknown>): Promise<unknown>, close(): Promise<void> }} OpenClient
 * @typedef {{ tool: string, ok: boolean, ms: number, problem?: string }} CallReport
 * @typedef {{ field: "client", connectMs?: number, firstListed?: number, firstListMs?: number, listed: string[], listedMs?: number, lists: number, calls: CallReport[], totalMs?: number, problem?: string }} ClientReport
 */

const pauseMs = 1000;

/**
 * Runs the task of the command line with a client library.
 *
 * @param {(target: Target, task: Task) => Promise<OpenClient>} open
 */
export async function runTask(open) {
  /** @type {Task} */
  const task = JSON.parse(readFileSync(process.argv[2] ?? "", "utf8"));
  /** @type {ClientReport} */
  const report = { field: "client", listed: [], lists: 0, calls: [] };
  const begun = performance.now();
  try {
    const client = await open(task.target, task);
    report.connectMs = since(begun);
    try {
      await listAll(client, task, report, begun);
      for (const call of task.calls) report.calls.push(await callOne(client, call, task.callMs));
    } finally {
      await client.close();
    }
  } catch (error) {
    report.problem = textOfError(error);
  }
  report.totalMs = since(begun);
  // Some libraries keep timers or sockets; the report is complete, so nothing is waited for once it is written.
  process.stdout.write(`\n${JSON.stringify(report)}\n`, () => process.exit(0));
}

/** @param {OpenClient} client @param {Task} task @param {ClientReport} report @param {number} begun */
async function listAll(client, task, report, begun) {
  for (;;) {
    report.listed = await client.list();
    report.lists += 1;
    report.listedMs = since(begun);
    report.firstListed ??= report.listed.length;
    report.firstListMs ??= report.listedMs;
    const names = new Set(report.listed);
    const isComplete = task.wanted.every((name) => names.has(name));
    if (isComplete || client.listsOnce === true || report.listedMs > task.patienceMs) return;
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}

/** @param {OpenClient} client @param {Call} call @param {number} callMs @returns {Promise<CallReport>} */
async function callOne(client, call, callMs) {
  const begun = performance.now();
  try {
    const result = await within(client.call(call.tool, call.arguments), callMs);
    const text = toText(result);
    const ok = text.includes(call.expect) && !isToolError(result);
    const problem = ok ? {} : { problem: `not the result with "${call.expect}": ${text.slice(0, 300)}` };
    return { tool: call.tool, ok, ms: since(begun), ...problem };
  } catch (error) {
    return { tool: call.tool, ok: false, ms: since(begun), problem: textOfError(error) };
  }
}

/** @param {unknown} result */
function isToolError(result) {
  return typeof result === "object" && result !== null && "isError" in result && result.isError === true;
}

/**
 * The text of a tool's result, whatever shape the library gives it: a protocol result, its content, or a text.
 *
 * @param {unknown} result
 * @returns {string}
 */
export function toText(result) {
  if (typeof result === "string") return result;
  if (Array.isArray(result)) return result.map(toText).join("\n");
  if (typeof result !== "object" || result === null) return String(result);
  const { content, text } = /** @type {{ content?: unknown, text?: unknown }} */ (result);
  if (typeof text === "string") return text;
  if (Array.isArray(content)) return content.map(toText).join("\n");
  return JSON.stringify(result);
}

/**
 * A tool that the library has made from the list. Throws when there is none.
 *
 * @template T
 * @param {ReadonlyMap<string, T>} tools
 * @param {string} name
 * @returns {T}
 */
export function find(tools, name) {
  const tool = tools.get(name);
  if (tool === undefined) throw new Error("it was not listed");
  return tool;
}

/** @param {Promise<unknown>} promise @param {number} ms */
function within(promise, ms) {
  /** @type {NodeJS.Timeout | undefined} */
  let timer;
  const late = new Promise((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${ms} ms`)), ms);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** @param {number} begun */
function since(begun) {
  return Math.round(performance.now() - begun);
}

/** @param {unknown} error @returns {string} */
function textOfError(error) {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause === undefined ? "" : ` (${textOfError(error.cause)})`;
  return `${error.name}: ${error.message}${cause}`.slice(0, 600);
}
