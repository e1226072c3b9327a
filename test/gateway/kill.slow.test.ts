// Promises 1 and 2: `kill -9` of the servers behind a gateway, one after the other, under load. Every call has one outcome,
// no call is carried out twice, and nobody but the callers of the killed one notices.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterAll, expect, test } from "vitest";
import { isAlive } from "../support/processes.ts";
import { startTestGateway, type TestGateway } from "./support/gateway.ts";
import { type CallRecord, startLoad } from "./support/load.ts";

/** `node proof/attacks/chaos.mjs kill` for a long run. */
const kills = Number(process.env["JUNCTOR_KILLS"] ?? 20);
const callsPerSecond = 200;
/** A server may be started six times a minute; more kills than that take longer. */
const killEveryMs = kills <= 50 ? 300 : 1150;

const fixture = fileURLToPath(new URL("../fixtures/children/chaos-server.mjs", import.meta.url));
const servers = Array.from({ length: 10 }, (_, index) => `s${index}`);
const folder = mkdtempSync(join(tmpdir(), "junctor-kill-"));
const logOf = (server: string): string => join(folder, `${server}.log`);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Kill {
  readonly server: string;
  readonly pid: number;
  readonly at: number;
  /** When it was seen alive for the last time: even that takes a while on a busy machine. */
  aliveAt: number;
  /** When it was up again. */
  upAt: number;
}

const isUp = ({ gateway }: TestGateway, server: string): boolean =>
  gateway.status().find(({ name }) => name === server)?.status === "up";

async function killOne(at: TestGateway, server: string): Promise<Kill> {
  await expect.poll(() => isUp(at, server)).toBe(true);
  const pid = at.pidsOf(server).at(-1)!;
  process.kill(pid, "SIGKILL");
  const now = performance.now();
  const kill: Kill = { server, pid, at: now, aliveAt: now, upAt: Infinity };
  void seeDie(kill);
  void seeRise(at, kill);
  return kill;
}

async function seeRise(at: TestGateway, kill: Kill): Promise<void> {
  const isBack = (): boolean => isUp(at, kill.server) && at.pidsOf(kill.server).at(-1) !== kill.pid;
  await expect.poll(isBack).toBe(true);
  kill.upAt = performance.now();
}

async function seeDie(kill: Kill): Promise<void> {
  while (isAlive(kill.pid)) {
    kill.aliveAt = performance.now();
    await setImmediate();
  }
}

/** What a server's processes noted: the nonce of each call they began, and which of them did. */
function notesOf(server: string): readonly (readonly [nonce: string, pid: number])[] {
  const lines = readFileSync(logOf(server), "utf8").split("\n").filter(Boolean);
  return lines.map((line) => [line.split(" ")[0]!, Number(line.split(" ")[1])]);
}

/** The kill during which a call of that server was underway or waiting for it to be up. */
function killOf(kills: readonly Kill[], { server, startedAt, endedAt }: CallRecord): Kill | undefined {
  return kills.find((kill) => kill.server === server && startedAt <= kill.upAt && endedAt >= kill.at);
}

test(
  `ten servers under ${callsPerSecond} calls a second, killed ${kills} times in all`,
  async () => {
    const mcpServers = Object.fromEntries(
      servers.map((name) => [name, { command: process.execPath, args: [fixture, `--log=${logOf(name)}`] }]),
    );
    await using at = await startTestGateway({ mcpServers });
    expect(servers.filter((server) => !isUp(at, server))).toEqual([]);
    const { port } = at.listener;
    const load = await startLoad({ port, servers, callsPerSecond, workMs: (index) => (index * 37) % 300 });
    const done: Kill[] = [];
    for (let count = 0; count < kills; count++) {
      await load.made(((count + 1) * killEveryMs * callsPerSecond) / 1000);
      done.push(await killOne(at, servers[count % servers.length]!));
    }
    await expect.poll(() => done.every(({ upAt }) => upAt < Infinity)).toBe(true);
    const records = await load.stop();

    const failed = records.filter(({ outcome }) => outcome.kind === "error");
    const began = servers.flatMap(notesOf);
    const pidOf = new Map(began);
    /** Calls that failed after a process that was killed had begun them. */
    const cutShort = failed.flatMap((record) => {
      const kill = done.find(({ pid }) => pid === pidOf.get(record.nonce));
      return kill === undefined ? [] : [{ ...record, kill }];
    });
    const lateBy = cutShort.map(({ endedAt, kill: { at: killedAt, aliveAt } }) => ({
      ms: endedAt - killedAt,
      ownMs: endedAt - aliveAt - load.starvedMs(aliveAt, endedAt),
    }));
    const sorted = lateBy.map(({ ms }) => ms).toSorted((one, other) => one - other);
    const at99 = sorted[Math.floor(sorted.length * 0.99)] ?? 0;
    const slowestMs = sorted.at(-1) ?? 0;
    const slowestOwnMs = Math.max(0, ...lateBy.map(({ ownMs }) => ownMs));
    const deliveries = (wanted: string): number =>
      failed.filter(({ outcome }) => outcome.kind === "error" && outcome.delivery === wanted).length;
    const slowestUpMs = Math.max(...done.map(({ at, upAt }) => upAt - at));
    console.log(
      `${records.length} calls, ${kills} kills: ${records.length - failed.length} results, ` +
        `${deliveries("outcome_unknown")} outcome_unknown, ${deliveries("not_sent")} not_sent; ` +
        `those in flight failed after ${(sorted[sorted.length >> 1] ?? 0).toFixed(0)} ms (median), ` +
        `${at99.toFixed(0)} ms (p99), ${slowestMs.toFixed(0)} ms (most; ` +
        `${slowestOwnMs.toFixed(0)} ms without waiting for the processor); ` +
        `servers were up again after ${slowestUpMs.toFixed(0)} ms at most`,
    );

    // One outcome each, and one that says all there is to say.
    expect(records.filter(({ outcome }) => outcome.kind === "wrong").slice(0, 3)).toEqual([]);
    expect(
      failed.filter(({ outcome, server }) => outcome.kind === "error" && outcome.server !== server),
    ).toEqual([]);
    // Only callers of a killed server, around the time it was killed, see an error.
    expect(failed.filter((record) => killOf(done, record) === undefined).slice(0, 3)).toEqual([]);
    expect(deliveries("outcome_unknown")).toBeGreaterThan(0);

    // What ends such a call is that its process is gone, not that another took its place.
    expect(cutShort.length).toBeGreaterThan(0);
    expect(cutShort.filter(({ endedAt, kill }) => endedAt > kill.upAt).slice(0, 3)).toEqual([]);

    // No call was carried out twice, and what is said of each is true.
    expect(began.length).toBe(new Set(began.map(([nonce]) => nonce)).size);
    for (const { nonce, outcome } of records) {
      if (outcome.kind === "result") expect(outcome.text).toBe(`${nonce} ${pidOf.get(nonce)}`);
      if (outcome.kind === "error" && outcome.delivery === "not_sent") expect(pidOf.has(nonce)).toBe(false);
    }

    // Everything is up again, and works.
    const after = await startLoad({ port, servers, callsPerSecond });
    await after.made(5 * servers.length);
    expect((await after.stop()).filter(({ outcome }) => outcome.kind !== "result")).toEqual([]);
  },
  kills * 30_000,
);
