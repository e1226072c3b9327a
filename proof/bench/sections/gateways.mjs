// Gateways: what it costs to pass a call on. The upstreams' own CPU does not count.

import { fileURLToPath } from "node:url";
import { hold } from "../lib/contest.mjs";
import { freePort } from "../lib/free-port.mjs";
import { openHttpSubject } from "../lib/subjects.mjs";
import { System } from "../lib/system.mjs";
import { gateways } from "./gateway-systems.mjs";

/** @typedef {import("../lib/run.mjs").Run} Run */
/** @typedef {import("../load/envelope.mjs").Era} Era */
/** @typedef {import("../load/scenarios.mjs").Scenario} Scenario */
/** @typedef {{ kind: "stdio" | "http", count: number, era: Era, scenario: Scenario, isQuick?: boolean }} Case */

/** @type {Case[]} */
const cases = [
  { kind: "stdio", count: 1, era: "legacy", scenario: "small", isQuick: true },
  { kind: "http", count: 1, era: "legacy", scenario: "small", isQuick: true },
  { kind: "stdio", count: 1, era: "modern", scenario: "small" },
  { kind: "http", count: 1, era: "modern", scenario: "small" },
  { kind: "stdio", count: 20, era: "legacy", scenario: "small" },
  { kind: "http", count: 20, era: "legacy", scenario: "small" },
  { kind: "stdio", count: 1, era: "legacy", scenario: "large" },
  { kind: "http", count: 1, era: "legacy", scenario: "large" },
];

/** @param {Run} run */
export async function runGateways(run) {
  const echo = await startHttpEcho();
  try {
    for (const each of cases.filter(({ isQuick }) => isQuick === true || !run.isQuick)) {
      const { kind, count, era, scenario } = each;
      const names = Object.keys(gateways).filter((name) => {
        const gateway = gateways[name];
        return gateway?.kinds.includes(kind) && gateway.eras.includes(era) && count <= gateway.maxUpstreams;
      });
      const entries = run.chosen(names).map((name) => ({
        name,
        open: () => openGateway(run.load, name, { ...each, url: `http://127.0.0.1:${echo.port}/` }),
      }));
      const upstreams = `${count} ${kind} upstream${count === 1 ? "" : "s"}`;
      const name = `${scenario === "large" ? "1 MB result" : "small call"}, ${upstreams}, ${era}`;
      const contest = run.contest(scenario === "large" ? "heavy" : "usual");
      run.report(await hold({ section: "gateways", name, entries, ...contest }));
    }
  } finally {
    await echo.stop();
  }
}

export async function startHttpEcho() {
  const port = await freePort();
  const file = fileURLToPath(new URL("../systems/upstreams/echo-http.mjs", import.meta.url));
  const echo = new System({ args: [file, String(port)], port });
  await echo.listening();
  return echo;
}

/**
 * @param {import("../lib/load.mjs").Load} load
 * @param {string} name
 * @param {Case & { url: string, connections?: number }} options
 */
export function openGateway(load, name, { kind, count, era, scenario, url, connections = 32 }) {
  const gateway = gateways[name];
  if (gateway === undefined) throw new Error(`there is no gateway ${name}`);
  const upstreams = /** @type {import("./gateway-systems.mjs").Upstreams} */ ({ kind, count, url });
  return openHttpSubject(load, (port) => gateway.launch(port, upstreams), {
    era,
    scenario,
    connections,
    minTools: count,
  });
}
