// Servers over HTTP: what a call costs, by era and by what is asked.

import { fileURLToPath } from "node:url";
import { hold } from "../lib/contest.mjs";
import { openHttpSubject } from "../lib/subjects.mjs";

/** @typedef {import("../lib/run.mjs").Run} Run */
/** @typedef {import("../load/envelope.mjs").Era} Era */
/** @typedef {import("../load/scenarios.mjs").Scenario} Scenario */

/** @type {Record<Era, string[]>} */
const names = {
  legacy: ["junctor", "sdk-v1", "sdk-v1-stateless", "sdk-v2", "sdk-v2-session", "fastmcp", "tmcp", "bare"],
  modern: ["junctor", "sdk-v2", "tmcp", "bare"],
};
/** What these do otherwise than their twins is over before a long answer begins. */
const smallOnly = ["sdk-v1-stateless", "sdk-v2-session"];

/** @type {Scenario[]} */
const allScenarios = ["small", "stream", "list", "large"];
/** @type {Scenario[]} */
const quickScenarios = ["small"];
/** @type {Record<Scenario, string>} */
const titles = { small: "small call", stream: "20 progress frames", list: "500 tools", large: "1 MB result" };

/** @param {Run} run */
export async function runServers(run) {
  const scenarios = run.isQuick ? quickScenarios : allScenarios;
  for (const scenario of scenarios) {
    for (const era of /** @type {const} */ (["legacy", "modern"])) {
      const isHeavy = scenario === "list" || scenario === "large";
      const field = names[era].filter((name) => !isHeavy || !smallOnly.includes(name));
      const entries = run.chosen(field).map((name) => ({
        name,
        open: () => openServer(run.load, name, { era, scenario, tools: scenario === "list" ? 500 : 3 }),
      }));
      const contest = run.contest(isHeavy ? "heavy" : scenario === "stream" ? "stream" : "usual");
      run.report(
        await hold({ section: "servers", name: `${titles[scenario]}, ${era}`, entries, ...contest }),
      );
    }
  }
}

/**
 * @param {import("../lib/load.mjs").Load} load
 * @param {string} name
 * @param {{ era: Era, scenario: Scenario, tools: number, connections?: number, nodeFlags?: string[] }} options
 */
export function openServer(load, name, { era, scenario, tools, connections = 32, nodeFlags = [] }) {
  const file = fileURLToPath(new URL(`../systems/servers/${name}.mjs`, import.meta.url));
  const form = scenario === "stream" ? "sse" : "json";
  return openHttpSubject(
    load,
    (port) => ({ args: [...nodeFlags, file, String(port), form, String(tools)] }),
    {
      era,
      scenario,
      connections,
    },
  );
}
