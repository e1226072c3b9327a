import { medianOf } from "./second-start.mjs";

/** A gateway that remembers its servers' lists must list everything within this time after its start. */
const secondStartMs = 1000;

/** @typedef {import("./cells.mjs").Cell} Cell */
/**
 * @typedef {object} ServerRow
 * @property {string} name
 * @property {string} package with its version
 * @property {string | undefined} revision the protocol that the gateway speaks with it
 * @property {number} own how many tools it lists by itself, without a gateway
 * @property {number} listed how many of them the gateway lists
 * @property {number} counted how many `junctor check` says that it lists
 * @property {number} mended how many of those the gateway changed, so that clients accept them
 * @property {readonly string[]} leftOut what the gateway does not list, because clients would refuse it
 * @property {number | undefined} coldMs when it was up, after the start of a gateway that had all servers to install
 * @property {number} downs how often it went down before
 * @property {number | undefined} warmMs how long it took to connect, once installed, by `junctor check`
 * @property {string | undefined} trouble what `junctor check` says is wrong with it, which may not concern its tools
 * @property {string | undefined} problem why its tools are not listed
 */
/**
 * @typedef {object} Report
 * @property {string} date
 * @property {string} node the Node of gateway and servers
 * @property {string} clientNode
 * @property {string} npm
 * @property {string} machine
 * @property {number} seconds
 * @property {boolean} isNpxCold
 * @property {number} bringUpSeconds
 * @property {readonly import("./second-start.mjs").SecondStart[]} secondStarts
 * @property {readonly ServerRow[]} servers
 * @property {readonly string[]} wanted
 * @property {readonly string[]} calls
 * @property {readonly (import("./clients.mjs").FieldClient & { version: string })[]} clients
 * @property {readonly Cell[]} cells
 * @property {number} left processes after the run
 * @property {readonly string[]} problems of the run itself
 */

/**
 * What of a run is not as it must be; empty when all is.
 *
 * @param {Report} report
 * @returns {string[]}
 */
export function findFaults(report) {
  return [
    ...report.problems,
    ...report.servers.flatMap(faultsOfServer),
    ...report.secondStarts.flatMap(faultsOfSecondStart),
    ...report.cells.flatMap(faultsOfCell),
    ...(report.left === 0 ? [] : [`${report.left} processes are left after the run`]),
  ];
}

/** @param {ServerRow} server @returns {string[]} */
function faultsOfServer({ name, own, listed, counted, leftOut, problem }) {
  const faults = problem === undefined ? [] : [`${name}: ${problem}`];
  if (listed === 0) faults.push(`${name}: none of its tools is listed`);
  else if (own !== listed + leftOut.length)
    faults.push(
      `${name}: it lists ${own} tools, the gateway ${listed} of them, and tells of ${leftOut.length} it left out`,
    );
  if (counted !== listed)
    faults.push(`${name}: junctor check counts ${counted} tools, clients see ${listed}`);
  return faults;
}

/** @param {import("./second-start.mjs").SecondStart} start @returns {string[]} */
function faultsOfSecondStart({ transport, listedMs, missing }) {
  const faults = missing.length === 0 ? [] : [`${missing.length} tools were not listed (${some(missing)})`];
  if (!(medianOf(listedMs) < secondStartMs))
    faults.push(`everything was listed after ${medianOf(listedMs)} ms only`);
  return faults.map((fault) => `second start over ${transport}: ${fault}`);
}

/** @param {Cell} cell @returns {string[]} */
function faultsOfCell({ client, transport, cache, report, calls, missing, left }) {
  const faults = [];
  if (report.problem !== undefined) faults.push(report.problem);
  if (missing.length > 0) faults.push(`${missing.length} tools are not listed (${some(missing)})`);
  // With nothing remembered the first list waits only so long; with something remembered it must be complete.
  if (cache === "warm" && report.lists > 1)
    faults.push(`its first list had only ${report.firstListed} tools`);
  for (const call of report.calls) if (!call.ok) faults.push(`${call.tool}: ${call.problem}`);
  if (report.calls.length < calls) faults.push(`${report.calls.length} of ${calls} calls were made`);
  if (left > 0) faults.push(`${left} processes were left`);
  return faults.map((fault) => `${client}, ${transport}, ${cache}: ${fault}`);
}

/** @param {readonly string[]} names */
function some(names) {
  return names.length > 3 ? `${names.slice(0, 3).join(", ")} and others` : names.join(", ");
}
