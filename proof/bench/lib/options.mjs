import { parseArgs } from "node:util";

export const sections = /** @type {const} */ ([
  "servers",
  "gateways",
  "clients",
  "stdio",
  "startup",
  "growth",
  "telemetry",
]);
/** @typedef {typeof sections[number]} Section */
/** A quick run is of these, unless others are asked for. */
const quickSystems = "junctor,sdk-v1,sdk-v2,mcp-proxy,bare";
/** @typedef {{ only: ReadonlySet<string>, systems: ReadonlySet<string> | undefined, goals: string, isQuick: boolean, isStrict: boolean, isWhole: boolean, out: string | undefined }} Options */

export const usage = `npm run proof -- bench [options]

  --quick             under a minute: fewer systems and cases, shorter turns
  --only SECTIONS     of ${sections.join(", ")} (comma-separated)
  --systems NAMES     only these, for example junctor,bare,sdk-v2
  --goals SET         which bounds to judge by: all (default), http, stdio, client, gateway
  --strict            fail when a goal is missed
  --out FOLDER        where to write bench.json and bench.svg; otherwise a whole run writes to docs/, others to proof/bench/results/
`;

/**
 * Throws a TypeError that says what is wrong.
 *
 * @param {string[]} args
 * @returns {Options | undefined} undefined when help was asked for
 */
export function parseOptions(args) {
  const { values } = parseArgs({
    args,
    options: {
      quick: { type: "boolean", default: false },
      strict: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
      only: { type: "string" },
      systems: { type: "string" },
      goals: { type: "string", default: "all" },
      out: { type: "string" },
    },
  });
  if (values.help) return undefined;
  // Systems are compared without it; and how cost grows does not fit into a minute.
  const byDefault = sections.filter((name) => name !== "telemetry" && (name !== "growth" || !values.quick));
  const only = values.only?.split(",") ?? [...byDefault];
  const unknown = only.find((name) => !sections.some((section) => section === name));
  if (unknown !== undefined)
    throw new TypeError(`there is no section ${unknown}: use ${sections.join(", ")}`);
  const systems = values.systems ?? (values.quick ? quickSystems : undefined);
  return {
    only: new Set(only),
    systems: systems === undefined ? undefined : new Set(systems.split(",")),
    goals: values.goals,
    isQuick: values.quick,
    isStrict: values.strict,
    isWhole: values.only === undefined && values.systems === undefined && !values.quick,
    out: values.out,
  };
}
