import { parseArgs } from "node:util";
import { clients } from "./clients.mjs";

/** A quick run has these, unless others are asked for. */
const quickServers = "everything,files,memory,sequential-thinking,gitlab-old";
const quickClients = "sdk-v1,sdk-v2,langchain,ai-sdk";

export const usage = `npm run proof -- field [options]

  --quick             five servers and four clients, with the packages that npx has already
  --only PART         servers or clients
  --servers NAMES     only these servers of proof/field/servers.json (comma-separated)
  --client NAMES      only these clients: ${clients.map(({ name }) => name).join(", ")}
  --keep-npx          do not empty the folder of npx before the first start
  --keep-logs         keep the folder of the run, which has the log of every gateway

A whole run writes docs/evidence/field.md, every other one proof/field/results/field.md.
`;

/**
 * @typedef {object} Options
 * @property {"servers" | "clients" | undefined} only
 * @property {ReadonlySet<string> | undefined} servers undefined: all
 * @property {ReadonlySet<string> | undefined} clients undefined: all
 * @property {boolean} keepsNpx
 * @property {boolean} keepsLogs
 * @property {boolean} isWhole
 */

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
      only: { type: "string" },
      servers: { type: "string" },
      client: { type: "string" },
      "keep-npx": { type: "boolean", default: false },
      "keep-logs": { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) return undefined;
  const { quick, only } = values;
  if (only !== undefined && only !== "servers" && only !== "clients")
    throw new TypeError(`there is no part ${only}: use --only servers or --only clients`);
  const named = toSet(values.client ?? (quick ? quickClients : undefined));
  const unknown = [...(named ?? [])].find((name) => !clients.some((client) => client.name === name));
  if (unknown !== undefined)
    throw new TypeError(`there is no client ${unknown}: use ${clients.map(({ name }) => name).join(", ")}`);
  return {
    only,
    servers: toSet(values.servers ?? (quick ? quickServers : undefined)),
    clients: named,
    keepsNpx: values["keep-npx"] || quick || only === "clients",
    keepsLogs: values["keep-logs"],
    isWhole: !quick && [only, values.servers, values.client].every((value) => value === undefined),
  };
}

/** @param {string | undefined} names */
function toSet(names) {
  return names === undefined ? undefined : new Set(names.split(","));
}
