import { spawn } from "node:child_process";
import { openSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { clientNode, folder } from "./install.mjs";

/** @typedef {import("./world.mjs").World} World */
/** @typedef {import("../clients/contract.mjs").Task} Task */
/** @typedef {import("../clients/contract.mjs").ClientReport} ClientReport */

/**
 * Runs a client program on a task. One that says nothing, or takes too long, is a report with a problem.
 *
 * @param {World} world
 * @param {{ client: string, cell: string, task: Task, cache: string, limitMs: number }} options
 * @returns {Promise<ClientReport>}
 */
export async function runClient(world, { client, cell, task, cache, limitMs }) {
  const file = join(world.run, `${cell}.task.json`);
  writeFileSync(file, JSON.stringify(task));
  // Files, not pipes: what a client leaves behind could keep a pipe open.
  const out = join(world.run, `${cell}.out.txt`);
  const err = join(world.run, `${cell}.err.txt`);
  const child = spawn(clientNode(), [join(folder, "clients", `${client}.mjs`), file], {
    cwd: world.run,
    env: world.env(cache),
    stdio: ["ignore", openSync(out, "w"), openSync(err, "w")],
  });
  const late = AbortSignal.timeout(limitMs);
  late.addEventListener("abort", () => child.kill("SIGKILL"));
  const how = await new Promise((resolve) => child.on("exit", (code, signal) => resolve(signal ?? code)));
  const report = findReport(readFileSync(out, "utf8"));
  if (report !== undefined) return report;
  const said = readFileSync(err, "utf8").trim().slice(-400);
  const problem = late.aborted ? `it was ended after ${limitMs} ms` : `it ended with ${how}: ${said}`;
  return { field: "client", listed: [], lists: 0, calls: [], problem };
}

/** Libraries print to the standard output too; the report is the last line that is one. @param {string} text */
function findReport(text) {
  for (const line of text.split("\n").toReversed()) {
    if (!line.startsWith('{"field":"client"')) continue;
    return /** @type {ClientReport} */ (JSON.parse(line));
  }
  return undefined;
}
