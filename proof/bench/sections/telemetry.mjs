// What it costs a gateway to be seen: everything off, everything on with a page open, and traces. In one run, in turns.
//
// Two processes of the same program differ by a few percent for as long as they run, by how V8 happened to compile them. So each
// way is measured in several sets of processes. Within a set the ways take short turns, and a ratio is that of two turns of one
// round; the figure is the median of the ratios of all rounds of all sets. "everything off, again" shows how much of a figure
// is chance.
//
// A turn is long enough that few of its calls meet cold caches, and that the page is told of calls at least once.
//
// V8 compiles what ran often, in threads whose CPU counts. Telemetry works on many calls at once, so its code runs more rarely than
// that of calls and is compiled later: every gateway serves twice as many calls before it is measured as in other sections.
//
// At 1 % a gateway would have to serve a million calls before the code of a traced one is compiled, as it is in a gateway that runs
// for an hour. So before the warm-up a gateway that traces gets calls that their caller traces.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { hold } from "../lib/contest.mjs";
import { freePort } from "../lib/free-port.mjs";
import { median, quantile, ratios } from "../lib/statistics.mjs";
import { openHttpSubject } from "../lib/subjects.mjs";

/** @typedef {import("../lib/run.mjs").Run} Run */
/** @typedef {import("../lib/contest.mjs").Subject} Subject */

const main = fileURLToPath(new URL("../../../packages/junctor/dist/cli/main.js", import.meta.url));
const echoFile = fileURLToPath(new URL("../systems/upstreams/echo-stdio.mjs", import.meta.url));
const exceptCommand = "upstreams/echo-stdio.mjs";
const key = "0123456789abcdef0123456789abcdef";

/** Most that each may cost more than a gateway with everything off. */
const goals = { "everything on, page open": 1.05, "1 % traced": 1.03 };

/**
 * Differences of a few percent need more rounds than ratios between programs do. A turn is a number of calls: on a machine that
 * is busy with something else, a turn by time would have too few.
 */
const full = {
  sets: 6,
  rounds: 5,
  turnMs: 5000,
  turnCalls: 10_000,
  warmUp: { turns: 4, durationMs: 12_000, maxCalls: 40_000 },
};
const quick = { sets: 2, rounds: 10, turnMs: 1000, turnCalls: 1000 };
/** Calls that their caller traces, before the warm-up of a gateway that traces. */
const tracedCalls = 10_000;

/** @param {Run} run */
export async function runTelemetry(run) {
  const folder = mkdtempSync(join(tmpdir(), "junctor-bench-telemetry-"));
  const sink = createServer((incoming, response) => {
    incoming.resume();
    incoming.on("end", () => response.end("{}"));
  });
  await new Promise((resolve) => sink.listen(0, "127.0.0.1", () => resolve(undefined)));
  const { port: sinkPort } = /** @type {import("node:net").AddressInfo} */ (sink.address());
  const endpoint = `http://127.0.0.1:${sinkPort}/v1/traces`;
  /** @type {Record<string, (adminPort: number) => object>} */
  const ways = {
    "everything off": () => ({ admin: false }),
    "everything off, again": () => ({ admin: false }),
    "everything on, page open": (port) => ({
      admin: { port, key: { env: "BENCH_KEY" } },
      accessLog: { file: join(folder, `access-${port}.jsonl`), maxBytes: 16 * 1024 * 1024, keep: 1 },
      traces: { endpoint, percent: 0 },
    }),
    "1 % traced": () => ({ admin: false, traces: { endpoint, percent: 1 } }),
    "all traced": () => ({ admin: false, traces: { endpoint, percent: 100 } }),
  };
  try {
    for (const era of /** @type {const} */ (["modern", "legacy"])) {
      const entries = Object.entries(ways).map(([name, toSettings]) => ({
        name,
        open: () => openObserved(run, { folder, era, toSettings }),
      }));
      const { plan, onStep } = run.contest();
      const { sets, ...turns } = run.isQuick ? quick : full;
      /** @type {import("../lib/contest.mjs").Contest[]} */
      const held = [];
      for (let set = 1; set <= sets; set++)
        held.push(
          await hold({
            section: "telemetry",
            name: `small call, 1 stdio upstream, ${era}`,
            entries,
            plan: { ...plan, ...turns },
            onStep: (step) => onStep(`set ${set} of ${sets}: ${step}`),
          }),
        );
      const contest = merge(held);
      run.report(contest);
      run.print(toVerdict(contest));
    }
  } finally {
    sink.closeAllConnections();
    sink.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * @param {Run} run
 * @param {{ folder: string, era: import("../load/envelope.mjs").Era, toSettings: (adminPort: number) => object }} options
 * @returns {Promise<Subject>}
 */
async function openObserved(run, { folder, era, toSettings }) {
  const adminPort = await freePort();
  const settings = toSettings(adminPort);
  const file = join(folder, `${adminPort}.json`);
  const mcpServers = { u0: { command: process.execPath, args: [echoFile] } };
  writeFileSync(file, JSON.stringify({ mcpServers, junctor: settings }));
  const subject = await openHttpSubject(
    run.load,
    (port) => ({
      args: [main, "serve", "--config", file, "--port", String(port)],
      env: { BENCH_KEY: key },
      exceptCommand,
    }),
    { era, scenario: "small", connections: 32 },
  );
  if ("traces" in settings && !("accessLog" in settings)) await makeTracedCalls(run, subject, era);
  if (!("accessLog" in settings)) return subject;
  const page = new AbortController();
  const response = await fetch(`http://127.0.0.1:${adminPort}/api/events`, {
    headers: { authorization: `Bearer ${key}` },
    signal: page.signal,
  });
  if (response.status !== 200) throw new Error(`the page cannot be opened: ${response.status}`);
  void readAll(response);
  return {
    ...subject,
    close: async () => {
      page.abort();
      await subject.close();
    },
  };
}

/** @param {Run} run @param {{ port: number, pid: number }} subject @param {import("../load/envelope.mjs").Era} era */
async function makeTracedCalls({ load }, { port, pid }, era) {
  const key = `traced ${port}`;
  await load.open(key, { transport: "http", port, path: "/mcp", era, scenario: "small", isTraced: true });
  await load.turn(key, { connections: 32, durationMs: 20_000, maxCalls: tracedCalls, tree: { pid } });
  await load.close(key);
}

/** @param {Response} response */
async function readAll(response) {
  try {
    for await (const _ of response.body ?? []);
  } catch {
    // It was closed.
  }
}

/**
 * All sets as one: the rounds of each way, one after the other.
 *
 * @param {readonly import("../lib/contest.mjs").Contest[]} held
 * @returns {import("../lib/contest.mjs").Contest}
 */
function merge(held) {
  const [first] = held;
  if (first === undefined) throw new Error("nothing was measured");
  const standings = first.standings.map((standing, place) => {
    const all = held.flatMap((contest) => contest.standings[place] ?? []);
    const failed = all.find(({ problem }) => problem !== undefined);
    if (failed !== undefined) return failed;
    const peakBytes = Math.max(...all.map((each) => each.peakBytes));
    return { ...standing, peakBytes, figures: all.flatMap(({ figures }) => figures) };
  });
  return { ...first, standings };
}

/** @param {import("../lib/contest.mjs").Contest} contest */
function toVerdict({ standings }) {
  const cpuOf = (/** @type {string} */ name) =>
    standings.find((each) => each.name === name)?.figures.map(({ cpu }) => cpu) ?? [];
  const off = cpuOf("everything off");
  return standings
    .slice(1)
    .map(({ name }) => {
      const all = ratios(cpuOf(name), off);
      const ratio = median(all);
      // Half of the distance between the quartiles, over the root of the number: about the error of the median.
      const error = ((quantile(all, 0.75) - quantile(all, 0.25)) / 2 / Math.sqrt(all.length)) * 1.25;
      const goal = /** @type {Record<string, number>} */ (goals)[name];
      const verdict =
        goal === undefined
          ? ""
          : ` (goal: at most ${((goal - 1) * 100).toFixed(0)} %) ${ratio <= goal ? "met" : "MISSED"}`;
      const percent = `${((ratio - 1) * 100).toFixed(1)} ± ${(error * 200).toFixed(1)} %`;
      return `${name}: ${percent} more CPU than off${verdict}`;
    })
    .join("\n");
}
