// `npm run proof -- field`: many real servers behind one gateway, and many real clients before it. `--help` lists the options.

import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { calls } from "./calls.mjs";
import { bringUp } from "./lib/bring-up.mjs";
import { runHttpCells, runStdioCells } from "./lib/cells.mjs";
import { runCheck } from "./lib/check.mjs";
import { clients } from "./lib/clients.mjs";
import { visitDirectly } from "./lib/direct.mjs";
import { clientNode, folder, installClients, versionOf } from "./lib/install.mjs";
import { parseOptions, usage } from "./lib/options.mjs";
import { renderPage } from "./lib/page.mjs";
import { endAll, processesOf, untilNone } from "./lib/processes.mjs";
import { countByServer } from "./lib/raw-list.mjs";
import { measureSecondStarts } from "./lib/second-start.mjs";
import { findFaults } from "./lib/verdict.mjs";
import { createWorld } from "./lib/world.mjs";

/** @typedef {import("./lib/world.mjs").World} World */
/** @typedef {import("./lib/options.mjs").Options} Options */

const bringUpLimitMs = 12 * 60_000;
const directLimitMs = 120_000;
const checkSeconds = 300;
const endLimitMs = 30_000;

const begun = performance.now();

try {
  const options = parseOptions(process.argv.slice(2));
  if (options === undefined) console.log(usage);
  else process.exitCode = await runField(options);
} catch (error) {
  if (!(error instanceof TypeError)) throw error;
  console.error(`field: ${error.message}`);
  process.exitCode = 2;
}

/** @param {Options} options @returns {Promise<number>} the exit code */
async function runField(options) {
  if (process.platform !== "linux") throw new TypeError("it counts processes by /proc, which only Linux has");
  installClients();
  const world = createWorld();
  const before = processesOf(world);
  if (before.length > 0)
    throw new TypeError(
      `another run is under way, or left processes: ${before.map(({ pid }) => pid).join(", ")}`,
    );
  progress(`the logs are in ${world.run}`);
  for (const signal of /** @type {const} */ (["SIGINT", "SIGTERM"])) {
    process.once(signal, () => {
      endAll(world);
      process.exit(1);
    });
  }
  let faults = ["the run was not finished"];
  try {
    const report = await visit(world, options);
    faults = findFaults(report);
    const page = options.isWhole
      ? join(folder, "../../docs/evidence/field.md")
      : join(folder, "results/field.md");
    mkdirSync(join(folder, "results"), { recursive: true });
    writeFileSync(page, renderPage(report));
    writeFileSync(join(folder, "results/field.json"), JSON.stringify(report, undefined, 1));
    for (const fault of faults) console.log(`NOT OK: ${fault}`);
    console.log(`processes after the run: ${report.left}`);
    console.log(`${page} is written; ${faults.length} faults, ${report.seconds} s`);
  } finally {
    endAll(world);
    if (faults.length === 0 && !options.keepsLogs) world.remove();
    world.removeOld();
  }
  return faults.length === 0 ? 0 : 1;
}

/** @param {World} world @param {Options} options @returns {Promise<import("./lib/verdict.mjs").Report>} */
async function visit(world, options) {
  const { file, config } = writeConfig(world, options);
  const names = Object.keys(config.mcpServers);
  const problems = [];
  const offered = new Set(names);
  const possible = calls(world).filter(({ tool }) => offered.has(tool.slice(0, tool.indexOf("__"))));
  if (!options.keepsNpx) world.emptyNpx();
  progress(`starting ${names.length} servers${options.keepsNpx ? "" : ", with nothing installed"}`);
  const first = await bringUp(world, { config: file, servers: names, limitMs: bringUpLimitMs, progress });
  problems.push(...(await leftBehind(world, "the first gateway")));
  const again = { config: file, cache: first.cache, wanted: first.names, progress };
  const secondStarts = await measureSecondStarts(world, again);
  const servers =
    options.only === "clients"
      ? names.map((name) => bareRow(name, config, first))
      : await lookAtServers(world, { file, config, first, calls: possible, problems });

  const chosen = clients.filter(({ name }) => options.clients?.has(name) ?? true);
  const cells = [];
  if (options.only !== "servers") {
    const shared = { config: file, wanted: first.names, calls: possible, progress };
    const over = (/** @type {"http" | "stdio"} */ transport) =>
      chosen.filter(({ transports }) => transports.includes(transport));
    cells.push(...(await runHttpCells(world, { ...shared, clients: over("http") })));
    cells.push(...(await runStdioCells(world, { ...shared, clients: over("stdio") })));
  }
  const left = await untilNone(world, endLimitMs);
  return {
    ...environment(),
    seconds: Math.round((performance.now() - begun) / 1000),
    isNpxCold: !options.keepsNpx,
    bringUpSeconds: first.seconds,
    secondStarts,
    servers,
    wanted: first.names,
    calls: possible.map(({ tool }) => tool),
    clients: chosen.map((client) => ({ ...client, version: versionOf(client.package) })),
    cells,
    left: left.length,
    problems,
  };
}

/**
 * What each server lists and answers by itself, and what the gateway says about it.
 *
 * @param {World} world
 * @param {{ file: string, config: any, first: import("./lib/bring-up.mjs").BringUp, calls: import("./clients/contract.mjs").Call[], problems: string[] }} options
 */
async function lookAtServers(world, { file, config, first, calls, problems }) {
  const names = Object.keys(config.mcpServers);
  /** @type {Map<string, import("./lib/direct.mjs").DirectVisit>} */
  const visits = new Map();
  const queue = [...names];
  const work = async () => {
    for (let name = queue.shift(); name !== undefined; name = queue.shift()) {
      const own = calls.filter(({ tool }) => tool.startsWith(`${name}__`));
      const settings = { env: world.env("direct"), cwd: world.desk, calls: own, limitMs: directLimitMs };
      const visit = await visitDirectly(config.mcpServers[name], settings);
      visits.set(name, visit);
      progress(`${name} by itself: ${visit.names.length} tools, ${own.length} calls ${visit.problem ?? ""}`);
    }
  };
  await Promise.all([work(), work()]);
  endAll(world);

  progress("junctor check");
  const checked = await runCheck(world, { config: file, timeoutSeconds: checkSeconds });
  if (checked.problem !== undefined) problems.push(`junctor check: ${checked.problem}`);
  problems.push(...(await leftBehind(world, "junctor check")));
  return names.map((name) => {
    const said = checked.servers.find((server) => server.name === name);
    const { problem, ...row } = bareRow(name, config, first);
    return {
      ...row,
      own: visits.get(name)?.names.length ?? 0,
      revision: said?.revision,
      counted: said?.tools ?? 0,
      mended: said?.mended ?? 0,
      leftOut: said?.leftOut ?? [],
      warmMs: said?.connectMs,
      trouble: said?.trouble,
      problem: problem ?? visits.get(name)?.problem ?? (said?.status === "up" ? undefined : said?.trouble),
    };
  });
}

/** @param {string} name @param {any} config @param {import("./lib/bring-up.mjs").BringUp} first */
function bareRow(name, config, first) {
  const listed = countByServer(first.names).get(name) ?? 0;
  const start = first.starts.get(name);
  return {
    name,
    package: String(config.mcpServers[name].args[1]),
    revision: undefined,
    own: listed,
    listed,
    counted: listed,
    mended: 0,
    leftOut: [],
    coldMs: start?.upMs,
    downs: start?.downs ?? 0,
    warmMs: undefined,
    trouble: undefined,
    problem: listed > 0 ? undefined : "it did not come up",
  };
}

/** The chosen servers, in a file of the run. @param {World} world @param {Options} options */
function writeConfig(world, options) {
  const all = JSON.parse(readFileSync(join(folder, "servers.json"), "utf8"));
  const mcpServers = Object.fromEntries(
    Object.entries(all.mcpServers).filter(([name]) => options.servers?.has(name) ?? true),
  );
  const unknown = [...(options.servers ?? [])].find((name) => !(name in mcpServers));
  if (unknown !== undefined) throw new TypeError(`there is no server ${unknown} in proof/field/servers.json`);
  const config = { ...all, mcpServers };
  const file = join(world.run, "mcp.json");
  writeFileSync(file, JSON.stringify(config, undefined, 2));
  return { file, config };
}

/** @param {World} world @param {string} whose */
async function leftBehind(world, whose) {
  const left = await untilNone(world, endLimitMs);
  endAll(world);
  return left.map(({ command }) => `${whose} left a process: ${command}`);
}

function environment() {
  const versionBy = (/** @type {string} */ command) =>
    spawnSync(command, ["--version"], { encoding: "utf8" }).stdout.trim();
  const all = cpus();
  return {
    date: new Date().toISOString().slice(0, 10),
    node: process.versions.node,
    npm: versionBy("npm"),
    clientNode: versionBy(clientNode()).replace("v", ""),
    machine: `${all.length} cores of ${all[0]?.model.trim() ?? "an unknown kind"}`,
  };
}

/** @param {string} text */
function progress(text) {
  const seconds = String(Math.round((performance.now() - begun) / 1000)).padStart(5);
  console.log(`${seconds} s  ${text}`);
}
