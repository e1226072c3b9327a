// `npm run proof -- attacks chaos cluster`: three replicas, Redis and haproxy under load, while one thing after the other is killed, stopped, cut
// off, restarted. No call may run twice, each ends once, and no caller sees anything of another.
import { type ChildProcess, fork } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fixture } from "../../bridge/support/upstream.ts";
import { createRandom } from "../../support/random.ts";
import { type Stage, startStage } from "../support/stage.ts";
import { callModern, type CallerOptions, LegacyCaller, type PlannedCall } from "./callers.ts";
import { between, makeTrouble } from "./faults.ts";
import type { CallEnd, CallRecord, StrayQuestion } from "./record.ts";
import { judge, renderFigures } from "./verdict.ts";

export interface ChaosOptions {
  readonly minutes: number;
  readonly seed: number;
}

/** Two on stdio, which run once in all, and two over HTTP, which each replica speaks to. */
const servers = ["pipe0", "pipe1", "weblegacy", "webmodern"];
const names = ["ada", "bob"];
const keyOf = (name: string): string => `${name}-0123456789-abcdefgh`;
/** Callers of each era. */
const callersPerEra = 12;

/** Violations that are told each in a line. */
const maxTold = 50;

/** How long after the last fault all calls have ended and all replicas are up again: a request has 3 minutes, a replica 90 s to start. */
const windDownMs = 6 * 60_000;

/** Resolves with whether all was well. Prints the seed, the figures, and each violation. Leaves no process behind. */
export async function runChaos({ minutes, seed }: ChaosOptions): Promise<boolean> {
  console.log(`Chaos of ${minutes} minutes, seed ${seed}`);
  const folder = mkdtempSync(join(tmpdir(), "junctor-chaos-"));
  const logs = servers.map((name) => join(folder, `${name}.log`));
  for (const log of logs) writeFileSync(log, "");
  const webs = await Promise.all([startWeb("legacy", logs[2]!), startWeb("modern", logs[3]!)]);
  const stage = await startStage(toConfig(logs, webs));
  try {
    const random = createRandom(seed);
    const endsAt = performance.now() + minutes * 60_000;
    const strays: StrayQuestion[] = [];
    const onStray = (stray: StrayQuestion): void => void strays.push(stray);
    const load = startLoad(stage, createRandom(seed + 1), endsAt, onStray);
    const ended = Promise.all([makeTrouble(stage, random, endsAt), load]);
    const [faults, records] = await inTime(ended, minutes * 60_000 + windDownMs);
    const runs = logs.flatMap((log) => readFileSync(log, "utf8").split("\n").filter(Boolean));
    const {
      violations,
      runs: ran,
      twice,
    } = judge(
      records,
      runs.map((line) => line.split(" ")[0]!),
      strays,
    );
    console.log(`\n${renderFigures(records)}\n`);
    console.log([...faults].map(([name, count]) => `${name}: ${count}`).join(", "));
    console.log(`${records.length} calls, ${ran} ran, ${twice} ran twice, ${violations.length} violations`);
    const errors = records.flatMap(({ end }) => (end.kind === "error" || end.kind === "broken" ? [end] : []));
    for (const [text, count] of countTexts(errors)) console.log(`  ${count} × ${text}`);
    if (violations.length > 0) tellOutput(stage);
    // Last, where they are found.
    for (const violation of violations.slice(0, maxTold)) console.log(`VIOLATION ${violation}`);
    if (violations.length > maxTold) console.log(`VIOLATION and ${violations.length - maxTold} more`);
    return violations.length === 0;
  } catch (error) {
    tellOutput(stage);
    console.log(`VIOLATION ${String(error).split("\n")[0]}`);
    return false;
  } finally {
    await stage[Symbol.asyncDispose]();
    for (const { child } of webs) child.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Settles as the promise does. Rejects when it does not settle in time, such as when a replica does not end on SIGTERM. */
async function inTime<T>(promise: Promise<T>, ms: number): Promise<T> {
  const late = new Error(`The run did not end within ${ms / 1000} s`);
  let timer: NodeJS.Timeout | undefined;
  const over = new Promise<never>((_resolve, reject) => (timer = setTimeout(() => reject(late), ms)));
  return Promise.race([promise, over]).finally(() => clearTimeout(timer));
}

interface Web {
  readonly child: ChildProcess;
  readonly url: string;
}

/** A server over HTTP, which no fault touches. */
async function startWeb(era: "legacy" | "modern", log: string): Promise<Web> {
  const args = ["--serves", era, "--log", log];
  const stdio = ["ignore", "ignore", "inherit", "ipc"] as const;
  const child = fork(fixture("cluster-chaos-http.mjs"), args, { stdio: [...stdio] });
  const [port] = (await once(child, "message")) as [number];
  return { child, url: `http://127.0.0.1:${port}/mcp` };
}

function toConfig(
  logs: readonly string[],
  webs: readonly Web[],
): { readonly mcpServers: object; readonly junctor: object } {
  const pipes = [0, 1].map((index): [string, object] => [
    servers[index]!,
    { command: process.execPath, args: [fixture("cluster-chaos.mjs"), `--log=${logs[index]!}`] },
  ]);
  const over = webs.map(({ url }, index): [string, object] => [servers[2 + index]!, { type: "http", url }]);
  const keys = names.map((name): [string, object] => [
    name,
    { sha256: createHash("sha256").update(keyOf(name)).digest("hex") },
  ]);
  return {
    mcpServers: Object.fromEntries([...pipes, ...over]),
    // A caller whose call was lost does not come back, and a replica that leaves need not wait long for it.
    junctor: { keys: Object.fromEntries(keys), drainMs: 5000, defaults: { answerWithinMs: 2000 } },
  };
}

/** Callers that make one call after the other until the time is over. */
async function startLoad(
  stage: Stage,
  random: () => number,
  endsAt: number,
  onStray: CallerOptions["onStray"],
): Promise<readonly CallRecord[]> {
  const records: CallRecord[] = [];
  const url = `${stage.balancer.url}/mcp`;
  const chance = { random };
  const beganAt = performance.now();
  let made = 0;
  const plan = (era: "modern" | "legacy", name: string): PlannedCall => {
    const asking = era === "modern" ? "parked" : "interactive";
    const kind = (["plain", "streaming", asking] as const)[between(chance, 0, 2)]!;
    const tool = { plain: "work", streaming: "recite", parked: "ask", interactive: "ask" }[kind];
    const server = servers[between(chance, 0, servers.length - 1)]!;
    return { kind, nonce: `${name}-${++made}`, tool: `${server}__${tool}`, ms: between(chance, 0, 400) };
  };
  const live = async (era: "modern" | "legacy", index: number): Promise<void> => {
    const name = names[index % names.length]!;
    const options: CallerOptions = { url, key: keyOf(name), onStray };
    const legacy = new LegacyCaller(options);
    while (performance.now() < endsAt) {
      const call = plan(era, name);
      const startedAt = performance.now();
      const end = await (era === "modern" ? callModern(call, options) : legacy.call(call));
      const { kind, nonce, tool } = call;
      const [atMs, tookMs] = [startedAt - beganAt, performance.now() - startedAt];
      records.push({ kind, era, nonce, tool, end, atMs, tookMs });
      // A gateway that refuses at once is not asked a thousand times a second.
      if (end.kind !== "result") await new Promise((resolve) => setTimeout(resolve, 200));
    }
  };
  const callers = Array.from({ length: callersPerEra }, (_, index) => index);
  await Promise.all(
    (["modern", "legacy"] as const).flatMap((era) => callers.map((index) => live(era, index))),
  );
  return records;
}

/** What callers were told, without the names of calls and replicas, most often first. */
function countTexts(errors: readonly CallEnd[]): readonly (readonly [string, number])[] {
  const counts = new Map<string, number>();
  for (const end of errors) {
    const text =
      end.kind === "error" ? `${end.delivery}: ${end.message}` : end.kind === "broken" ? end.why : "";
    const known = text.replaceAll(/\b\d+\b/g, "N").replaceAll(/\b(?:pipe\d|web\w+)\b/g, "SERVER");
    counts.set(known, (counts.get(known) ?? 0) + 1);
  }
  return [...counts].toSorted(([, one], [, other]) => other - one).slice(0, 25);
}

/** The log of each replica, which has lines of JSON. */
function tellOutput({ replicas }: Stage): void {
  for (const replica of replicas) {
    const lines = replica.output().split("\n");
    console.log(
      lines
        .filter((line) => line.startsWith('{"level"'))
        .slice(-10)
        .join("\n"),
    );
  }
}
