// `npm run bench:check`: fails when Junctor has become dearer, against the limits only, as ratios of CPU time.
//
// Many short turns of both, alternating, and the median of the ratios of neighbours: what disturbs one turn disturbs its
// neighbour too, and a single disturbed pair does not move a median. Needs no peers. `--write` makes what was measured the
// new baseline; the margins stay.

import { readFileSync, writeFileSync } from "node:fs";
import { hold } from "./lib/contest.mjs";
import { Load } from "./lib/load.mjs";
import { requireProc } from "./lib/processes.mjs";
import { median, quantile, ratios } from "./lib/statistics.mjs";
import { openStdioSubject } from "./lib/subjects.mjs";
import { toColumns } from "./lib/table.mjs";
import { openGateway } from "./sections/gateways.mjs";
import { openServer } from "./sections/servers.mjs";
import { stdioFile } from "./sections/stdio.mjs";

/** @typedef {{ ratio: number, margin: number }} Limit a ratio may be worse by the margin, a share of it */
/** @typedef {{ name: string, open: (load: Load, system: string) => Promise<import("./lib/contest.mjs").Subject> }} Check */

const plan = { rounds: 30, turnMs: 80, warmUp: { durationMs: 2500, maxCalls: 25_000 } };
const baselineFile = new URL("baseline.json", import.meta.url);
const baseline = /** @type {Record<string, Limit>} */ (JSON.parse(readFileSync(baselineFile, "utf8")));

/** @type {Check[]} */
const checks = [
  { name: "server, JSON, legacy", open: (load, system) => openServer(load, system, small("legacy")) },
  { name: "server, JSON, modern", open: (load, system) => openServer(load, system, small("modern")) },
  {
    name: "stdio, 32 in flight",
    open: (load, system) => openStdioSubject(load, [stdioFile(system)], { era: "legacy", inFlight: 32 }),
  },
  {
    name: "gateway, stdio upstream",
    open: (load, system) =>
      openGateway(load, system, { kind: "stdio", count: 1, era: "legacy", scenario: "small", url: "" }),
  },
];

requireProc();
const load = new Load();
const rows = [["junctor / bare, CPU a call", "median", "quartiles", "baseline", "limit", ""]];
try {
  for (const check of checks) rows.push(await measure(check));
} finally {
  load.end();
}
console.log(toColumns(rows));
if (process.argv.includes("--write"))
  writeFileSync(baselineFile, `${JSON.stringify(baseline, undefined, 2)}\n`);

/** @param {Check} check */
async function measure({ name, open }) {
  const entries = ["junctor", "bare"].map((system) => ({ name: system, open: () => open(load, system) }));
  const { standings } = await hold({ section: "check", name, entries, plan, onStep: () => {} });
  const [ours = [], bare = []] = standings.map(({ figures }) => figures.map(({ cpu }) => cpu));
  const problem = standings.find((each) => each.problem !== undefined);
  if (problem !== undefined) {
    process.exitCode = 1;
    return [name, `FAILED: ${problem.name}: ${problem.problem}`];
  }
  const all = ratios(ours, bare);
  const reached = median(all);
  const { ratio, margin } = baseline[name] ?? { ratio: reached, margin: 0.5 };
  const limit = ratio * (1 + margin);
  const isWithin = reached <= limit;
  if (!isWithin) process.exitCode = 1;
  baseline[name] = { ratio: Number(reached.toFixed(2)), margin };
  return [
    name,
    `${reached.toFixed(2)}x`,
    `${quantile(all, 0.25).toFixed(2)}–${quantile(all, 0.75).toFixed(2)}`,
    `${ratio.toFixed(2)}x`,
    `${limit.toFixed(2)}x`,
    isWithin ? "ok" : "WORSE",
  ];
}

/** @param {import("./load/envelope.mjs").Era} era */
function small(era) {
  return { era, scenario: /** @type {const} */ ("small"), tools: 3 };
}
