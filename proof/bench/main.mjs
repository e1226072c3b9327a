// `npm run proof -- bench`: Junctor and its peers, measured in one run. See README.md.

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { absences } from "./absences.mjs";
import { judge } from "./goals.mjs";
import { installPeers } from "./lib/install.mjs";
import { parseOptions, usage } from "./lib/options.mjs";
import { requireProc } from "./lib/processes.mjs";
import { describeMachine, toReport, writePage, writeReport } from "./lib/report.mjs";
import { Run } from "./lib/run.mjs";
import { toGoalTable } from "./lib/table.mjs";
import { runClients } from "./sections/clients.mjs";
import { runGateways } from "./sections/gateways.mjs";
import { runGrowth } from "./sections/growth.mjs";
import { runServers } from "./sections/servers.mjs";
import { runStartup } from "./sections/startup.mjs";
import { runStdio } from "./sections/stdio.mjs";
import { runTelemetry } from "./sections/telemetry.mjs";

/** @typedef {import("./lib/run.mjs").Plans} Plans */

// Many short rounds make a steadier median than few long ones. Where a call takes milliseconds, a short turn would have too
// few of them.
//
// Code is compiled by how often it ran: a quick system is warm after many calls, a slow one gets a fixed time. A call with
// twenty frames takes longer, but is no sooner warm.

/** @type {Plans} */
const fullPlans = {
  usual: { rounds: 7, turnMs: 130, warmUp: { turns: 4, durationMs: 2000, maxCalls: 20_000 } },
  stream: { rounds: 7, turnMs: 130, warmUp: { turns: 4, durationMs: 3500, maxCalls: 20_000 } },
  heavy: { rounds: 7, turnMs: 200, warmUp: { turns: 3, durationMs: 3000, maxCalls: 10_000 } },
};
/** @type {Plans} */
const quickPlans = {
  usual: { rounds: 5, turnMs: 80, warmUp: { turns: 3, durationMs: 900, maxCalls: 8000 } },
  stream: { rounds: 5, turnMs: 80, warmUp: { turns: 3, durationMs: 1500, maxCalls: 8000 } },
  heavy: { rounds: 3, turnMs: 150, warmUp: { turns: 1, durationMs: 300, maxCalls: 6000 } },
};
const root = fileURLToPath(new URL("../..", import.meta.url));

/** @type {Record<string, (run: Run) => Promise<void>>} */
const runners = {
  servers: runServers,
  gateways: runGateways,
  clients: runClients,
  stdio: runStdio,
  startup: runStartup,
  growth: runGrowth,
  telemetry: runTelemetry,
};

try {
  const options = parseOptions(process.argv.slice(2));
  if (options === undefined) console.log(usage);
  else process.exitCode = await bench(options);
} catch (error) {
  if (!(error instanceof TypeError)) throw error;
  console.error(`${error.message}\n\n${usage}`);
  process.exitCode = 2;
}

/** @param {import("./lib/options.mjs").Options} options */
async function bench({ only, systems, goals, isQuick, isStrict, isWhole, out }) {
  requireProc();
  installPeers(only, systems);
  const run = new Run({ isQuick, systems, plans: isQuick ? quickPlans : fullPlans });
  const { rounds, turnMs } = run.plans.usual;
  console.log(`${describeMachine()}; ${rounds} rounds of ${turnMs} ms, medians, every answer checked\n`);
  try {
    for (const section of only) await runners[section]?.(run);
  } finally {
    run.end();
  }
  const verdicts = judge(run, goals);
  if (verdicts.length > 0) run.print(toGoalTable(verdicts));
  if (isQuick) run.print("quick: not everybody was warm yet; ratios are better taken from a full run");
  if (isWhole) run.print(`who is missing where:\n${absences.map((each) => `  ${each}`).join("\n")}`);
  const folder = out ?? join(root, isWhole ? "docs" : "proof/bench/results");
  const report = toReport(run, verdicts);
  writeReport(report, folder);
  if (isWhole && out === undefined) writePage(report, join(root, "docs/evidence/performance.md"));
  const written =
    isWhole && out === undefined ? "bench.json, bench.svg and performance.md" : "bench.json and bench.svg";
  console.log(`${(run.elapsedMs / 1000).toFixed(0)} s; wrote ${written}`);
  const wrong = run.wrongAnswers();
  for (const { kind, text } of wrong) console.error(`${kind}  ${text}`);
  return wrong.length > 0 || (isStrict && verdicts.some(({ isMet }) => !isMet)) ? 1 : 0;
}
