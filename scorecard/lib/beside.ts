import { spawn } from "node:child_process";
import { once } from "node:events";
import { createRegistry } from "../../src/tools/registry.ts";
import { startTestGateway, type TestGateway } from "../../test/gateway/support/gateway.ts";
import { Callers } from "../../test/gateway/support/load.ts";
import { fixture, hostile } from "./gateway.ts";

/** An entry of `mcpServers`. */
export type Entry = { readonly command: string; readonly args: readonly string[] } | { readonly url: string };

/** The entry of a hostile server over one transport, and a way to end it. */
export async function startHostile(
  kind: string,
  transport: "stdio" | "http",
): Promise<{ readonly entry: Entry; readonly end: () => void }> {
  const args = [hostile("hostile.mjs"), kind];
  if (transport === "stdio") return { entry: { command: process.execPath, args }, end: () => {} };
  const child = spawn(process.execPath, [...args, "--http"], { stdio: ["ignore", "pipe", "inherit", "ipc"] });
  const [port] = (await once(child.stdout!, "data")) as [Buffer];
  return {
    entry: { url: `http://127.0.0.1:${Number(port.toString())}/mcp` },
    end: () => child.kill("SIGKILL"),
  };
}

/** What calls of good servers cost in one slice of time. */
interface Slice {
  /** Processor time of 99 of 100 calls, as an idle machine would need it. */
  readonly cpuMs: number;
  /** Half of the calls took no longer than this. */
  readonly wallMs: number;
  /** For how much of the calls' time this process was running. */
  readonly share: number;
  readonly failures: number;
}

const good = { child: { command: process.execPath, args: [fixture("children/chaos-server.mjs")] } };

/** What a good server's callers noticed of a hostile one. */
export interface Beside {
  /** The p99 beside it by the p99 without it. */
  readonly ratio: number;
  readonly withoutMs: number;
  readonly besideMs: number;
  readonly medianMs: number;
  /** For how much of the calls' time this process was running beside it. Where that is little, more of a flood meets each call. */
  readonly share: number;
  readonly calls: number;
  readonly failures: number;
  /** Most memory beside it more than without it. */
  readonly grownBytes: number;
}

export interface BesideOptions {
  readonly rounds: number;
  readonly callsPerSlice: number;
  /** Calls the hostile server now and then, as its own callers do. */
  readonly isCalled: boolean;
}

/**
 * Measures a good server alone and beside a hostile one, in slices that take turns. Calls are measured by the processor
 * time that this process (clients and gateway) used from their beginning to their end: on an idle machine that is how long
 * they take, on a busy one it is how long they would take.
 */
export async function measureBeside(entry: Entry, options: BesideOptions): Promise<Beside> {
  const { rounds, callsPerSlice, isCalled } = options;
  const near = createRegistry();
  near.register("near__work", {}, () => "done");
  const config = { mcpServers: good, junctor: { servers: {} } };
  await using at = await startTestGateway(config, { local: { near }, firstListMs: 3000 });
  await measure(at, Math.max(300, callsPerSlice)); // To warm up.
  const without: Slice[] = [];
  const beside: Slice[] = [];
  let grownBytes = 0;
  const ratio = (): number => medianOf(beside, "cpuMs") / medianOf(without, "cpuMs");
  for (let round = 0; round < rounds || (round < 3 * rounds && ratio() >= 2); round++) {
    without.push(await measure(at, callsPerSlice));
    globalThis.gc?.();
    const before = process.memoryUsage().rss;
    await at.gateway.update({ ...config, mcpServers: { ...good, hostile: entry } });
    using watch = watchMemory();
    const stop = isCalled ? annoy(at) : () => {};
    beside.push(await measure(at, callsPerSlice));
    stop();
    grownBytes = Math.max(grownBytes, watch.peak() - before);
    await at.gateway.update(config);
  }
  const all = [...without, ...beside];
  return {
    ratio: ratio(),
    withoutMs: medianOf(without, "cpuMs"),
    besideMs: medianOf(beside, "cpuMs"),
    medianMs: medianOf(beside, "wallMs"),
    share: medianOf(beside, "share"),
    calls: all.length * callsPerSlice,
    failures: all.reduce((sum, slice) => sum + slice.failures, 0),
    grownBytes,
  };
}

async function measure({ listener }: TestGateway, calls: number): Promise<Slice> {
  using modern = new Callers(listener.port, undefined);
  using legacy = await Callers.legacy(listener.port);
  const cpuMs: number[] = [];
  const wallMs: number[] = [];
  let failures = 0;
  for (let call = 0; call < calls; call++) {
    const callers = call % 2 === 0 ? modern : legacy;
    if (call % 20 < 2 && (await callers.call("child__work", { nonce: "n" })).kind !== "result") failures++;
    const startedAt = performance.now();
    const before = process.cpuUsage();
    if ((await callers.call("near__work", {})).kind !== "result") failures++;
    const { user, system } = process.cpuUsage(before);
    cpuMs.push((user + system) / 1000);
    wallMs.push(performance.now() - startedAt);
  }
  const usualMs = quantile(cpuMs, 0.5);
  const share = Math.min(1, sum(cpuMs) / sum(wallMs));
  const idleMs = cpuMs.map((ms, call) => toIdleMs(ms, wallMs[call]!, usualMs));
  return { cpuMs: quantile(idleMs, 0.99), wallMs: quantile(wallMs, 0.5), share, failures };
}

/**
 * A flood is let in at a rate of time: while this process waits for the processor, more of it gathers, and the next call is
 * charged with that. So of what a call takes more than usual, only the share counts for which this process was running.
 */
function toIdleMs(cpuMs: number, wallMs: number, usualMs: number): number {
  const moreMs = Math.max(0, cpuMs - usualMs);
  return Math.min(cpuMs, usualMs) + moreMs * Math.min(1, cpuMs / wallMs);
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

/** Calls the hostile server now and then. */
function annoy({ listener }: TestGateway): () => void {
  const callers = new Callers(listener.port, undefined);
  const timer = setInterval(() => void callers.call("hostile__work", { nonce: "n" }).catch(() => {}), 100);
  return () => {
    clearInterval(timer);
    callers[Symbol.dispose]();
  };
}

function watchMemory(): Disposable & { peak(): number } {
  let most = 0;
  const look = (): void => {
    most = Math.max(most, process.memoryUsage().rss);
  };
  const timer = setInterval(look, 20);
  return {
    peak: () => {
      look();
      return most;
    },
    [Symbol.dispose]: () => clearInterval(timer),
  };
}

function medianOf(slices: readonly Slice[], key: keyof Slice): number {
  return quantile(
    slices.map((slice) => slice[key]),
    0.5,
  );
}

export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]!;
}
