// `npm run bench:check`: fails when Junctor has become dearer, against the limits only, as ratios of CPU time. Needs no peers.
//
// Made to be steady on a machine that does other things too:
// - Many short turns of both, alternating, and the median of the ratios of neighbours: what disturbs one turn disturbs its
//   neighbour too, and a single disturbed pair does not move a median.
// - A second opinion: the ratio of the lower quartiles of both. What disturbs makes turns dearer, so the cheap turns are the
//   undisturbed ones. A change of the code moves both opinions, a neighbour seldom does: the lower one counts.
// - What is too dear is measured once more, in new processes. A change of the code is too dear twice.
//
// `--write` makes what was measured the new baseline, whatever it is; the margins stay.

import { readFileSync, writeFileSync } from "node:fs";
import { hold } from "./lib/contest.mjs";
import { Load } from "./lib/load.mjs";
import { requireProc } from "./lib/processes.mjs";
import { median, quantile, ratios } from "./lib/statistics.mjs";
import { openStdioSubject } from "./lib/subjects.mjs";
import { toColumns } from "./lib/table.mjs";
import { openGateway, startHttpEcho } from "./sections/gateways.mjs";
import { openServer } from "./sections/servers.mjs";
import { stdioFile } from "./sections/stdio.mjs";

/** @typedef {import("./load/scenarios.mjs").Scenario} Scenario */
/** @typedef {import("./lib/contest.mjs").Plan} Plan */
/** @typedef {{ ratio: number, margin: number }} Limit a ratio may be worse by the margin, a share of it */
/** @typedef {{ name: string, plan: Plan, open: (system: string) => Promise<import("./lib/contest.mjs").Subject> }} Check */
/** @typedef {{ median: number, quartiles: number, problem?: string }} Measured the two opinions */

/** @type {Plan} */
const usual = { rounds: 40, turnMs: 35, warmUp: { turns: 6, durationMs: 2500, maxCalls: 30_000 } };
/** Where a call takes milliseconds. @type {Plan} */
const heavy = { rounds: 14, turnMs: 100, warmUp: { turns: 6, durationMs: 1500, maxCalls: 30_000 } };
const baselineFile = new URL("baseline.json", import.meta.url);
const baseline = /** @type {Record<string, Limit>} */ (JSON.parse(readFileSync(baselineFile, "utf8")));

requireProc();
const started = performance.now();
const load = new Load();
const echo = await startHttpEcho();

/** @type {Check[]} */
const checks = [
  { name: "server, JSON, legacy", plan: usual, open: server("legacy", "small") },
  { name: "server, JSON, modern", plan: usual, open: server("modern", "small") },
  { name: "server, SSE, legacy", plan: usual, open: server("legacy", "stream") },
  {
    name: "stdio, 32 in flight",
    plan: usual,
    open: (system) => openStdioSubject(load, [stdioFile(system)], { era: "legacy", inFlight: 32 }),
  },
  { name: "gateway, stdio upstream", plan: usual, open: gateway("stdio", "small") },
  { name: "gateway, HTTP upstream", plan: usual, open: gateway("http", "small") },
  { name: "gateway, 1 MB", plan: heavy, open: gateway("stdio", "large") },
];

const isWriting = process.argv.includes("--write");
const rows = [["junctor / bare, CPU a call", "median", "quartiles", "baseline", "margin", "limit", ""]];
try {
  for (const check of checks) rows.push(...(await judge(check)));
} finally {
  load.end();
  await echo.stop();
}
console.log(toColumns(rows));
console.log(`${((performance.now() - started) / 1000).toFixed(0)} s`);
if (isWriting) writeFileSync(baselineFile, toJson(baseline));

/** @param {Check} check @returns {Promise<string[][]>} a row for each time it was measured */
async function judge(check) {
  const { name } = check;
  const { ratio, margin } = baseline[name] ?? { ratio: 0, margin: 0.3 };
  const limit = ratio * (1 + margin);
  const isTooDear = (/** @type {Measured} */ each) => !isWriting && lowerOf(each) > limit;
  const toRow = (/** @type {Measured} */ each, /** @type {string} */ verdict) =>
    each.problem === undefined
      ? [
          name,
          toTimes(each.median),
          toTimes(each.quartiles),
          toTimes(ratio),
          `${margin * 100} %`,
          toTimes(limit),
          verdict,
        ]
      : [name, `FAILED: ${each.problem}`];
  // What else the machine does only ever makes a reading worse, so one good reading of three is enough.
  const rows = [];
  for (let left = 2; ; left--) {
    const measured = await measure(check);
    const hasFailed = measured.problem !== undefined || isTooDear(measured);
    if (measured.problem === undefined)
      baseline[name] = { ratio: Number(lowerOf(measured).toFixed(2)), margin };
    if (!hasFailed || left === 0) {
      if (hasFailed) process.exitCode = 1;
      return [...rows, toRow(measured, hasFailed ? "WORSE" : "ok")];
    }
    rows.push(toRow(measured, "once more"));
  }
}

/** @param {Check} check @returns {Promise<Measured>} */
async function measure({ name, plan, open }) {
  const entries = ["junctor", "bare"].map((system) => ({ name: system, open: () => open(system) }));
  const onStep = () => {};
  const { standings } = await hold({ section: "check", name, entries, plan, onStep });
  const [ours = [], bare = []] = standings.map(({ figures }) => figures.map(({ cpu }) => cpu));
  const failed = standings.find(({ problem }) => problem !== undefined);
  return {
    median: median(ratios(ours, bare)),
    quartiles: quantile(ours, 0.25) / quantile(bare, 0.25),
    ...(failed !== undefined && { problem: `${failed.name}: ${failed.problem}` }),
  };
}

/** @param {Measured} measured */
function lowerOf({ median, quartiles }) {
  return Math.min(median, quartiles);
}

/** @param {number} ratio */
function toTimes(ratio) {
  return `${ratio.toFixed(2)}x`;
}

/** Laid out as the formatter would: a limit on one line. @param {Record<string, Limit>} limits */
function toJson(limits) {
  const lines = Object.entries(limits).map(
    ([name, { ratio, margin }]) => `  ${JSON.stringify(name)}: { "ratio": ${ratio}, "margin": ${margin} }`,
  );
  return `{\n${lines.join(",\n")}\n}\n`;
}

/** @param {import("./load/envelope.mjs").Era} era @param {Scenario} scenario @returns {Check["open"]} */
function server(era, scenario) {
  return (system) => openServer(load, system, { era, scenario, tools: 3 });
}

/** @param {"stdio" | "http"} kind @param {Scenario} scenario @returns {Check["open"]} */
function gateway(kind, scenario) {
  const url = `http://127.0.0.1:${echo.port}/`;
  // A turn begins and ends with a call on every socket, which are few where a call is long.
  const connections = scenario === "large" ? 8 : 32;
  return (system) => openGateway(load, system, { kind, count: 1, era: "legacy", scenario, url, connections });
}
