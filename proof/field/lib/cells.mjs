// One cell of the second table: a client, a transport, and a gateway that remembers its servers' lists or not.

import { stdioTarget, startGateway } from "./gateway.mjs";
import { endAll, untilNone } from "./processes.mjs";
import { runClient } from "./run-client.mjs";

/** @typedef {import("./world.mjs").World} World */
/** @typedef {import("../clients/contract.mjs").ClientReport} ClientReport */
/** @typedef {import("../clients/contract.mjs").Call} Call */
/** @typedef {import("./clients.mjs").FieldClient} FieldClient */
/**
 * @typedef {object} Cell
 * @property {string} client
 * @property {"http" | "stdio"} transport
 * @property {"cold" | "warm"} cache
 * @property {ClientReport} report
 * @property {number} calls how many calls it had to make
 * @property {string[]} missing tools that must be listed and are not
 * @property {string[]} extra tools that are listed for this client only: some servers have tools for clients that can do more
 * @property {number} left processes that were there after the gateway's end
 */
/** @typedef {{ config: string, wanted: readonly string[], calls: readonly Call[], clients: readonly FieldClient[], progress: (text: string) => void }} CellOptions */

const patienceMs = 180_000;
const callMs = 120_000;
const clientLimitMs = 400_000;
const endLimitMs = 30_000;

/**
 * A gateway for two clients, which come as soon as its port is open, while its servers are starting: first one that remembers
 * nothing, then one with what that one remembered. More clients at once would take the processor from the servers.
 *
 * @param {World} world
 * @param {CellOptions} options
 * @returns {Promise<Cell[]>}
 */
export async function runHttpCells(world, options) {
  const cells = [];
  for (let index = 0; index < options.clients.length; index += 2) {
    const pair = options.clients.slice(index, index + 2);
    for (const cache of /** @type {const} */ (["cold", "warm"])) {
      const ended = await visitGateway(world, pair, cache, options);
      const left = await countLeft(world, options);
      cells.push(...ended.map((cell) => ({ ...cell, left })));
    }
  }
  return cells;
}

/**
 * @param {World} world
 * @param {readonly FieldClient[]} pair
 * @param {"cold" | "warm"} cache
 * @param {CellOptions} options
 */
async function visitGateway(world, pair, cache, options) {
  const { config, progress } = options;
  const folder = `http-${pair.map(({ name }) => name).join("-")}`;
  const gateway = await startGateway(world, { config, cache: folder, name: `${folder}-${cache}` });
  try {
    return await Promise.all(
      pair.map(async (client) => {
        const cell = { client: client.name, transport: /** @type {const} */ ("http"), cache };
        const target = { transport: /** @type {const} */ ("http"), url: gateway.url };
        return runCell(world, cell, target, withCallsOf(client, options));
      }),
    );
  } finally {
    const problem = await gateway.stop();
    if (problem !== undefined) progress(problem);
  }
}

/**
 * A gateway for each client, which starts it: first one that remembers nothing, then one with what that one remembered.
 *
 * @param {World} world
 * @param {CellOptions} options
 * @returns {Promise<Cell[]>}
 */
export async function runStdioCells(world, options) {
  const cells = [];
  for (const client of options.clients) {
    for (const cache of /** @type {const} */ (["cold", "warm"])) {
      const cell = { client: client.name, transport: /** @type {const} */ ("stdio"), cache };
      const folder = `stdio-${client.name}`;
      const target = stdioTarget(world, {
        config: options.config,
        cache: folder,
        name: `${folder}-${cache}`,
      });
      const ended = await runCell(world, cell, target, withCallsOf(client, options));
      cells.push({ ...ended, left: await countLeft(world, options) });
    }
  }
  return cells;
}

/** @param {FieldClient} client @param {CellOptions} options @returns {CellOptions} */
function withCallsOf({ maxCalls }, options) {
  return { ...options, calls: options.calls.slice(0, maxCalls) };
}

/**
 * @param {World} world
 * @param {Pick<Cell, "client" | "transport" | "cache">} cell
 * @param {import("../clients/contract.mjs").Target} target
 * @param {CellOptions} options
 * @returns {Promise<Omit<Cell, "left">>}
 */
async function runCell(world, cell, target, { wanted, calls, progress }) {
  const { client, transport, cache } = cell;
  const name = `${transport}-${cache}-${client}`;
  const report = await runClient(world, {
    client,
    cell: name,
    cache: `client-${client}`,
    task: { target, wanted: [...wanted], calls: [...calls], patienceMs, callMs },
    limitMs: clientLimitMs,
  });
  const ok = report.calls.filter((call) => call.ok).length;
  const seconds = ((report.totalMs ?? 0) / 1000).toFixed(1);
  const lists = `${report.firstListed ?? 0}, then ${report.listed.length} of ${wanted.length} tools`;
  progress(`${name}: ${lists}, ${ok} of ${calls.length} calls, ${seconds} s ${report.problem ?? ""}`);
  for (const call of report.calls) if (!call.ok) progress(`  ${call.tool}: ${call.problem}`);
  const listed = new Set(report.listed);
  const known = new Set(wanted);
  return {
    ...cell,
    report,
    calls: calls.length,
    missing: wanted.filter((name) => !listed.has(name)),
    extra: report.listed.filter((name) => !known.has(name)),
  };
}

/** @param {World} world @param {CellOptions} options */
async function countLeft(world, { progress }) {
  const left = await untilNone(world, endLimitMs);
  for (const { pid, command } of left) progress(`  process ${pid} was left: ${command}`);
  endAll(world);
  return left.length;
}
