import { familyOf } from "../../../test/gateway/support/cli-gateway.ts";
import { type CallRecord, startLoad } from "../../../test/gateway/support/load.ts";
import { isAlive } from "../../../test/support/processes.ts";
import { childrenOf, fixture, startGateway, until } from "../lib/gateway.ts";
import { type Line, type Row, type Scale, toText } from "../lib/row.ts";
import { figureOf, runTest } from "../lib/run-test.ts";

const servers = ["s0", "s1", "s2"];
const config = {
  mcpServers: Object.fromEntries(
    servers.map((name) => [
      name,
      { command: process.execPath, args: [fixture("children/chaos-server.mjs")] },
    ]),
  ),
};
const isFailed = ({ outcome }: CallRecord): boolean => outcome.kind !== "result";

const isRefused = ({ outcome }: CallRecord): boolean =>
  outcome.kind === "wrong" && outcome.what.includes('"delivery":"not_sent"');

/** The helper of a gateway that ends its children when it is killed. */
function guardianOf(pid: number): number | undefined {
  return childrenOf(pid).find(({ command }) => command.includes("junctor-guardian"))?.pid;
}

/** The guardian is killed again and again; calls go on, it comes back, and at the end it still does its work. */
async function killGuardian(kills: number): Promise<readonly Line[]> {
  await using gateway = await startGateway(config);
  const load = await startLoad({
    port: gateway.port,
    servers,
    callsPerSecond: 50,
    workMs: (index) => index % 40,
  });
  let missing = 0;
  let killed: number | undefined;
  // One that was killed is still among the children for a moment.
  const isBack = (): boolean => ![undefined, killed].includes(guardianOf(gateway.pid));
  for (let count = 0; count < kills; count++) {
    if (!(await until(isBack, 5000))) {
      missing++;
      continue;
    }
    const pid = guardianOf(gateway.pid)!;
    // One that lives for less than a second, five times in a row, is not started again until the next child is.
    await new Promise((resolve) => setTimeout(resolve, 1100));
    process.kill(pid, "SIGKILL");
    killed = pid;
  }
  await until(isBack, 5000);
  const records = await load.stop();
  const family = familyOf(gateway.pid);
  process.kill(gateway.pid, "SIGKILL");
  await gateway.exited;
  const isGone = await until(() => family.left().length === 0, 30_000);
  const failed = records.filter(isFailed).length;
  return [
    {
      what: "`kill -9` of the guardian under load, then of the gateway",
      count: `${kills} kills, ${toText(records.length)} calls`,
      bound: "0 calls fail, the guardian is back, 0 orphans at the end",
      figure: `${failed} calls failed, ${missing} times it was not back within 5 s, ${isGone ? 0 : family.left().length} orphans`,
      isMet: failed === 0 && missing === 0 && isGone,
    },
  ];
}

/** The gateway is killed under load, again and again: no process of it may be left. */
async function killGateway(kills: number): Promise<readonly Line[]> {
  let orphans = 0;
  let calls = 0;
  let silent = 0;
  for (let count = 0; count < kills; count++) {
    await using gateway = await startGateway(config);
    const load = await startLoad({ port: gateway.port, servers, callsPerSecond: 100, workMs: () => 5 });
    await load.made(20);
    const family = familyOf(gateway.pid);
    process.kill(gateway.pid, "SIGKILL");
    await gateway.exited;
    if (!(await until(() => family.left().length === 0, 30_000))) orphans += family.left().length;
    const records = await load.stop();
    calls += records.length;
    silent += records.filter(({ outcome }) => outcome.kind === "wrong" && outcome.what === "[]").length;
  }
  return [
    {
      what: "`kill -9` of the gateway under load, three servers each",
      count: `${kills} kills, ${toText(calls)} calls`,
      bound: "0 processes left, 0 calls answered without an outcome",
      figure: `${orphans} processes left, ${silent} calls answered without an outcome`,
      isMet: orphans === 0 && silent === 0,
    },
  ];
}

async function killUpstreams(kills: number): Promise<readonly Line[]> {
  const run = await runTest("test/gateway/kill.slow.test.ts", { JUNCTOR_KILLS: String(kills) });
  return [
    {
      what: "`kill -9` of ten servers in turn, under 200 calls a second",
      count: `${kills} kills`,
      bound: "1 outcome a call, 0 calls done twice, others' failures 0, all servers back",
      figure: figureOf(run, /\d+ calls, \d+ kills: .*/),
      isMet: run.isGreen,
    },
  ];
}

/** Every call that was taken is answered before the process ends. */
async function terminate(rounds: number): Promise<readonly Line[]> {
  let calls = 0;
  let refused = 0;
  let cut = 0;
  let wrongExits = 0;
  let orphans = 0;
  for (let round = 0; round < rounds; round++) {
    await using gateway = await startGateway(config);
    const { port, pid } = gateway;
    const load = await startLoad({
      port,
      servers,
      callsPerSecond: 100,
      workMs: (index) => (index * 13) % 200,
    });
    await load.made(100);
    const family = familyOf(pid);
    process.kill(pid, "SIGTERM");
    const stoppedAt = performance.now();
    const { code } = await gateway.exited;
    const records = await load.stop();
    // Those sent before the signal may not be cut. Where the gateway had not read them yet, it says that they were not sent on.
    const underway = records.filter(({ sentAt }) => sentAt < stoppedAt);
    calls += underway.length;
    refused += underway.filter(isRefused).length;
    cut += underway.filter((record) => record.outcome.kind === "wrong" && !isRefused(record)).length;
    if (code !== 0) wrongExits++;
    if (!(await until(() => family.left().length === 0, 15_000)))
      orphans += family.left().filter(isAlive).length;
  }
  return [
    {
      what: "SIGTERM under load",
      count: `${rounds} times, ${toText(calls)} calls`,
      bound: "0 calls without an outcome, exit code 0, 0 processes left",
      figure: `${cut} calls without an outcome, ${refused} refused because the gateway had not read them, ${wrongExits} other exit codes, ${orphans} processes left`,
      isMet: cut === 0 && wrongExits === 0 && orphans === 0,
    },
  ];
}

async function run(scale: Scale): Promise<readonly Line[]> {
  const isFull = scale === "full";
  return [
    ...(isFull ? await killUpstreams(100) : []),
    ...(await killGateway(isFull ? 100 : 1)),
    ...(await killGuardian(isFull ? 100 : 1)),
    ...(await terminate(isFull ? 50 : 2)),
  ];
}

export const row: Row = {
  title: "Kills",
  how: "Real processes: `junctor serve` with servers on stdio under a steady load of callers of both eras, and `kill` from outside.",
  limitMinutes: 90,
  isInShort: true,
  run,
};
