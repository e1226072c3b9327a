import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { hold } from "../../bench/lib/contest.mjs";
import { Load } from "../../bench/lib/load.mjs";
import { median, quantile, ratios } from "../../bench/lib/statistics.mjs";
import { openServer } from "../../bench/sections/servers.mjs";
import { root } from "../setup.mjs";

const plan = { rounds: 40, turnMs: 35, warmUp: { turns: 6, durationMs: 2500, maxCalls: 30_000 } };

/** CPU time of a call of a tool of the gateway's own process, as a multiple of a bare echo's. */
export async function measureOwnTool() {
  const load = new Load();
  try {
    const options = { era: "modern", scenario: "small", tools: 3 };
    const entries = ["junctor-own", "bare"].map((name) => ({
      name,
      open: () => openServer(load, name, options),
    }));
    const { standings } = await hold({ section: "house", name: "own", entries, plan, onStep: () => {} });
    const failed = standings.find(({ problem }) => problem !== undefined);
    if (failed !== undefined) throw new Error(`${failed.name}: ${failed.problem}`);
    const [own, bare] = standings.map(({ figures }) => figures.map(({ cpu }) => cpu));
    // The lower of two opinions, as in `npm run bench:check`: what disturbs makes turns dearer.
    const ratio = Math.min(median(ratios(own, bare)), quantile(own, 0.25) / quantile(bare, 0.25));
    const title = "CPU of a call of a tool of the gateway's own process / bare echo";
    return { name: "cpu", title, value: Number(ratio.toFixed(2)), goal: 1.3, places: [] };
  } finally {
    load.end();
  }
}

/** How long `npm run check` takes now. It says something about the code only while the machine has nothing else to do. */
export function measureCheck() {
  const started = performance.now();
  const { stdout } = spawnSync(process.execPath, [join(root, "scripts/test.mjs"), "--quick"], {
    encoding: "utf8",
  });
  const seconds = Math.ceil((performance.now() - started) / 1000);
  const places = stdout.trim().split("\n").slice(-6);
  return { name: "check", title: "seconds of npm run check", value: seconds, goal: 59, places };
}
