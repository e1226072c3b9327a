// What the figures have to reach, as ratios within one run.

import { median, ratios } from "./lib/statistics.mjs";

/** @typedef {import("./lib/run.mjs").Run} Run */
/** @typedef {{ section: string, contest: string, of: string, against: string }} Pair dearer or not: CPU of one over CPU of the other */
/** @typedef {{ what: string, pair?: Pair, race?: string, atMost?: number, atLeast?: number }} Goal */
/** @typedef {{ what: string, bound: string, reached: number | undefined, isMet: boolean, remark: string }} Verdict */

const eras = ["legacy", "modern"];
const gatewayContests = {
  "stdio upstream": "small call, 1 stdio upstream, legacy",
  "HTTP upstream": "small call, 1 http upstream, legacy",
};
const largeContests = {
  "1 MB, stdio upstream": "1 MB result, 1 stdio upstream, legacy",
  "1 MB, HTTP upstream": "1 MB result, 1 http upstream, legacy",
};

/** @type {Record<string, Goal[]>} */
const sets = {
  all: [
    ...eras.map((era) => overBare("servers", `small call, ${era}`, `server, JSON, ${era}`, 1.3)),
    ...eras.map((era) => overBare("servers", `20 progress frames, ${era}`, `server, SSE, ${era}`, 1.5)),
    ...eras.map((era) => under("servers", `small call, ${era}`, `server, JSON, ${era}`, "sdk-v2", 8)),
    ...eras.map((era) => under("servers", `20 progress frames, ${era}`, `server, SSE, ${era}`, "sdk-v2", 8)),
    ...eras.map((era) => overBare("servers", `500 tools, ${era}`, `tools/list of 500, ${era}`, 1.2)),
    ...Object.entries(gatewayContests).map(([what, name]) =>
      overBare("gateways", name, `gateway, ${what}`, 1.5),
    ),
    ...Object.entries(gatewayContests).map(([what, name]) =>
      under("gateways", name, `gateway, ${what}`, "mcp-proxy", 6),
    ),
    ...Object.entries(largeContests).map(([what, name]) =>
      overBare("gateways", name, `gateway, ${what}`, 1.3),
    ),
    under("stdio", "32 in flight, legacy", "stdio, 32 in flight", "sdk-v1", 6),
    { what: "stdio server: first answer, ms", race: "stdio server, ms to first answer", atMost: 250 },
    {
      what: "gateway: first answer, ms",
      race: "gateway with 1 stdio upstream, ms to first answer",
      atMost: 250,
    },
  ],
  http: [
    ...eras.map((era) => overBare("servers", `small call, ${era}`, `JSON, ${era}`, 1.4)),
    ...eras.map((era) => under("servers", `small call, ${era}`, `JSON, ${era}`, "sdk-v2", 6)),
    ...eras.map((era) => under("servers", `20 progress frames, ${era}`, `SSE, ${era}`, "sdk-v2", 6)),
  ],
  stdio: [under("stdio", "32 in flight, legacy", "32 in flight", "sdk-v1", 5)],
  client: [under("clients", "16 in flight", "16 in flight", "sdk-v2", 3)],
  gateway: Object.entries({ ...gatewayContests, ...largeContests }).flatMap(([what, name]) => [
    overBare("gateways", name, what, 1.6),
    under("gateways", name, what, "mcp-proxy", 5),
  ]),
};

/**
 * @param {Run} run
 * @param {string} set
 * @returns {Verdict[]} for what this run has measured
 */
export function judge(run, set) {
  const goals = sets[set];
  if (goals === undefined)
    throw new TypeError(`there are no goals ${set}: use ${Object.keys(sets).join(", ")}`);
  return goals.filter((goal) => isMeasured(run, goal)).map((goal) => verdictOf(run, goal));
}

/** @param {Run} run @param {Goal} goal */
function isMeasured(run, { pair, race }) {
  return pair === undefined
    ? run.races.some(({ name }) => name === race)
    : run.contests.some(({ section, name }) => section === pair.section && name === pair.contest);
}

/** @param {Run} run @param {Goal} goal @returns {Verdict} */
function verdictOf(run, { what, pair, race, atMost, atLeast }) {
  const reached = pair === undefined ? medianMs(run, race) : medianRatio(run, pair);
  const unit = pair === undefined ? "" : "x";
  const bound = atMost === undefined ? `at least ${atLeast}${unit}` : `at most ${atMost}${unit}`;
  const isMet = reached !== undefined && reached <= (atMost ?? Infinity) && reached >= (atLeast ?? -Infinity);
  return {
    what,
    bound,
    reached,
    isMet,
    remark: isMet ? "" : remarkOn(run, { what, pair, atLeast }, reached),
  };
}

/**
 * Why a goal was missed, where the figures tell.
 *
 * @param {Run} run
 * @param {{ what: string, pair: Pair | undefined, atLeast: number | undefined }} goal
 * @param {number | undefined} reached
 */
function remarkOn(run, { pair, atLeast }, reached) {
  if (reached === undefined) return "not measured: one of the two did not take part";
  if (pair === undefined || atLeast === undefined) return "";
  const limit = medianRatio(run, { ...pair, against: "bare" });
  return limit !== undefined && limit < atLeast ? `even bare reaches only ${limit.toFixed(1)}x` : "";
}

/** @param {Run} run @param {string | undefined} race */
function medianMs(run, race) {
  const times =
    run.races.find(({ name }) => name === race)?.times.find(({ name }) => name === "junctor")?.ms ?? [];
  return times.length === 0 ? undefined : median(times);
}

/** @param {Run} run @param {Pair} pair */
function medianRatio(run, { section, contest, of, against }) {
  const found = run.contests.find((each) => each.section === section && each.name === contest);
  const cpuOf = (/** @type {string} */ system) =>
    found?.standings.find(({ name }) => name === system)?.figures.map(({ cpu }) => cpu) ?? [];
  const each = ratios(cpuOf(of), cpuOf(against));
  return each.length === 0 ? undefined : median(each);
}

/** @param {string} section @param {string} contest @param {string} what @param {number} atMost @returns {Goal} */
function overBare(section, contest, what, atMost) {
  return {
    what: `${what}: junctor / bare`,
    pair: { section, contest, of: "junctor", against: "bare" },
    atMost,
  };
}

/** @param {string} section @param {string} contest @param {string} what @param {string} peer @param {number} atLeast @returns {Goal} */
function under(section, contest, what, peer, atLeast) {
  return {
    what: `${what}: ${peer} / junctor`,
    pair: { section, contest, of: peer, against: "junctor" },
    atLeast,
  };
}
