import { spawn } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { root } from "../source-graph.ts";
import { createDaemonHome, type DaemonHome, notedServers, type TestFront } from "../support/daemon-home.ts";
import { bin } from "../support/junctor-bin.ts";

// `npm run proof -- attacks chaos daemon [ROUNDS]` runs many rounds, and holds them to 3 s each; here a few show that nothing is lost.
const rounds = Number(process.env["JUNCTOR_DAEMON_ROUNDS"] ?? 6);
const isTimed = process.env["JUNCTOR_DAEMON_ROUNDS"] !== undefined;
const seed = Number(process.env["JUNCTOR_SEED"] ?? 19);
const names = ["a", "b", "c"];
const clients = 4;

interface Fate {
  readonly key: string;
  readonly end: "ok" | "unknown" | "not_sent" | "left" | "other";
}

test.runIf(process.platform === "linux")(
  `${rounds} rounds of chaos: no call is made twice or stays without an end, and every client goes on`,
  { timeout: rounds * 60_000 },
  async () => {
    const random = createRandom(seed);
    await using home = createDaemonHome({ mcpServers: {} });
    const journal = join(home.folder, "journal");
    writeFileSync(journal, "");
    const config = (more: object = {}): object => ({
      mcpServers: notedServers(names, { env: { JOURNAL: journal } }),
      junctor: { daemon: { idleMs: 1000 }, ...more },
    });
    home.write(config());
    const newer = copyAsNewer(home.folder);
    const fronts = await Promise.all(Array.from({ length: clients }, () => openClient(home)));
    const fates: Fate[] = [];
    let keys = 0;
    const callOnce = async (front: TestFront, ms = 0): Promise<Fate["end"]> => {
      const key = `k${++keys}`;
      const name = `${names[keys % names.length]}__note`;
      const end = await front.call(name, { key, ms }).then(toEnd, () => "left" as const);
      fates.push({ key, end });
      return end;
    };
    const actions: { readonly [name: string]: () => Promise<void> | void } = {
      "kill the daemon": () => killOne(home.daemons(), random),
      "kill a front": async () => {
        const index = Math.floor(random() * fronts.length);
        fronts[index]?.process.kill("SIGKILL");
        await fronts[index]?.exited;
        fronts[index] = await openClient(home);
      },
      "kill a server": () => killOne(serversOf(home), random),
      "start two daemons at once": () => {
        for (let count = 0; count < 2; count++) startDaemon(home, bin);
      },
      "remove the socket": () =>
        rmSync(join(home.folder, ".junctor", "run"), { recursive: true, force: true }),
      "start a newer version": () => startDaemon(home, newer),
      "edit the config": () => home.write(config({ deny: [`x${keys}__*`] })),
    };
    const slowest = new Map<string, Round>();
    const late: string[] = [];
    for (let round = 0; round < rounds; round++) {
      const order = Object.keys(actions);
      const name = order[Math.floor(random() * order.length)] ?? "";
      const underway = fronts.map((front) => callOnce(front, Math.floor(random() * 300)));
      await actions[name]?.();
      const begun = performance.now();
      const waitedBefore = readWaitedMs();
      await Promise.all(fronts.map((front) => untilServed(() => callOnce(front))));
      const took = performance.now() - begun;
      const waited = readWaitedMs() - waitedBefore;
      if (took > (slowest.get(name)?.took ?? 0)) slowest.set(name, { took, waited });
      if (took > 3000) late.push(`${name}, round ${round}: ${describeRound({ took, waited })}`);
      await Promise.all(underway);
    }
    const noted = readFileSync(journal, "utf8").split("\n").filter(Boolean);
    expect(noted.length, "calls that were made twice").toBe(new Set(noted).size);
    expect(fates.length, "every call ended once").toBe(keys);
    const made = new Set(noted);
    expect(fates.filter(({ key, end }) => end === "ok" && !made.has(key))).toEqual([]);
    expect(fates.filter(({ key, end }) => end === "not_sent" && made.has(key))).toEqual([]);
    expect(fates.filter(({ end }) => end === "other")).toEqual([]);
    if (isTimed) report(slowest, fates, late);
    await Promise.all(fronts.map((front) => front.leave()));
    await expect.poll(() => home.processes()).toEqual([]);
    // Only the command is held to it: a test must pass while something else keeps every core busy.
    if (isTimed) expect(late).toEqual([]);
  },
);

interface Round {
  readonly took: number;
  readonly waited: number;
}

/** How long programs of this machine waited for a processor since it started: tells a busy machine from waits of our own. */
function readWaitedMs(): number {
  try {
    const [, total = "0"] = /^some .*total=(\d+)/.exec(readFileSync("/proc/pressure/cpu", "utf8")) ?? [];
    return Number(total) / 1000;
  } catch {
    return 0; // The system does not count it.
  }
}

function describeRound({ took, waited }: Round): string {
  return `${Math.round(took)} ms, ${Math.round(waited)} ms of them with programs that waited for a processor`;
}

function report(slowest: ReadonlyMap<string, Round>, fates: readonly Fate[], late: readonly string[]): void {
  const count = (end: Fate["end"]): number => fates.filter((fate) => fate.end === end).length;
  const lines = Array.from(
    slowest,
    ([name, round]) => `  ${name}: all clients served again after at most ${describeRound(round)}`,
  );
  const ends = `${fates.length} calls: ${count("ok")} done, ${count("unknown")} outcome unknown, ${count("not_sent")} not sent, ${count("left")} whose client was killed`;
  const missed = `  later than 3 s: ${late.join("; ") || "none"}`;
  process.stdout.write(`seed ${seed}, ${rounds} rounds\n${lines.join("\n")}\n  ${ends}\n${missed}\n`);
}

async function openClient(home: DaemonHome): Promise<TestFront> {
  const front = home.attach();
  await front.shake();
  return front;
}

/** Calls until one is done. A server that is started again takes its time. */
async function untilServed(call: () => Promise<Fate["end"]>): Promise<void> {
  for (;;) if ((await call()) === "ok") return;
}

function toEnd(text: string): Fate["end"] {
  if (/^k\d+$/.test(text)) return "ok";
  if (text.includes("outcome_unknown")) return "unknown";
  return text.includes("not_sent") || text.includes("Unknown tool") ? "not_sent" : "other";
}

function killOne(pids: readonly number[], random: () => number): void {
  const pid = pids[Math.floor(random() * pids.length)];
  if (pid === undefined) return;
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It ended by itself.
  }
}

function serversOf(home: DaemonHome): readonly number[] {
  return home.processes().filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("daemon-server.mjs");
    } catch {
      return false;
    }
  });
}

function startDaemon({ env, config }: DaemonHome, program: string): void {
  const words = [program, "daemon", "--take-over", "--config", config];
  spawn(process.execPath, words, {
    env: { ...process.env, ...env },
    detached: true,
    stdio: "ignore",
  }).unref();
}

/** The same program with a higher version. */
function copyAsNewer(folder: string): string {
  const next = join(folder, "newer");
  mkdirSync(next);
  cpSync(join(root, "packages/junctor/dist"), join(next, "dist"), { recursive: true });
  symlinkSync(join(root, "node_modules"), join(next, "node_modules"));
  const manifest = JSON.parse(readFileSync(join(root, "packages/junctor/package.json"), "utf8")) as object;
  writeFileSync(join(next, "package.json"), JSON.stringify({ ...manifest, version: "99.0.0" }));
  return join(next, "dist", "cli", "main.js");
}

/** The same numbers for the same seed (mulberry32). */
function createRandom(start: number): () => number {
  let state = start;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
