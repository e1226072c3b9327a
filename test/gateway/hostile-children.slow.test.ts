// Promise 3: one server, however broken, cannot delay another by more than twice. Slices with and without it take turns in
// one run. The machine has other things to do, so a call is measured by what this process, clients and gateway, did from
// its beginning to its end: on an idle machine that is how long it takes, on a busy one it is what it would take.
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { createRegistry } from "../../src/tools/registry.ts";
import { connectTo, type GatewayClient } from "./support/clients.ts";
import { startTestGateway, type TestGateway } from "./support/gateway.ts";
import { Callers } from "./support/load.ts";

const pathOf = (name: string): string =>
  fileURLToPath(new URL(`../fixtures/children/${name}`, import.meta.url));
const healthy = { command: process.execPath, args: [pathOf("chaos-server.mjs")] };
const hostile = (trouble: string): object => ({
  command: process.execPath,
  args: [pathOf("chaos-hostile.mjs"), trouble],
});

const rounds = Number(process.env["JUNCTOR_HOSTILE_ROUNDS"] ?? 5);
const callsPerSlice = 1500;
const ballast = "x".repeat(50_000);
const mcpServers = { child: healthy };
/** Measured, because all its work is done in this process; the child only has to answer. */
const near = createRegistry();
near.register("near__work", {}, () => "done");

/** How long calls took in one slice: what 99 of 100 would need on an idle machine, and half of them in all. */
interface Slice {
  readonly cpuMs: number;
  readonly wallMs: number;
}

/** Calls the healthy servers, one call after the other, as clients of both eras. */
async function measure({ listener }: TestGateway): Promise<Slice> {
  using modern = new Callers(listener.port, undefined);
  using legacy = await Callers.legacy(listener.port);
  const cpuMs: number[] = [];
  const wallMs: number[] = [];
  for (let call = 0; call < callsPerSlice; call++) {
    const callers = call % 2 === 0 ? modern : legacy;
    if (call % 20 < 2)
      expect(await callers.call("child__work", { nonce: "n" })).toMatchObject({ kind: "result" });
    const startedAt = performance.now();
    const before = process.cpuUsage();
    expect(await callers.call("near__work", {})).toEqual({ kind: "result", text: "done" });
    const { user, system } = process.cpuUsage(before);
    cpuMs.push((user + system) / 1000);
    wallMs.push(performance.now() - startedAt);
  }
  const usualMs = quantile(cpuMs, 0.5);
  const idleMs = cpuMs.map((ms, call) => toIdleMs(ms, wallMs[call]!, usualMs));
  return { cpuMs: quantile(idleMs, 0.99), wallMs: quantile(wallMs, 0.5) };
}

/**
 * What a call would take on an idle machine. A flood is let in at a rate of time: while this process waits for the
 * processor, more of it gathers, and the next call is charged with that. So of what a call takes more than usual, only the
 * share counts for which this process was running.
 */
function toIdleMs(cpuMs: number, wallMs: number, usualMs: number): number {
  const moreMs = Math.max(0, cpuMs - usualMs);
  return Math.min(cpuMs, usualMs) + moreMs * Math.min(1, cpuMs / wallMs);
}

/** Calls a child every now and then, with much to read, until the returned function is called. */
function annoy(client: GatewayClient, server: "child" | "hostile"): () => void {
  const stopping = new AbortController();
  const { signal } = stopping;
  const timer = setInterval(
    () => void client.call(`${server}__work`, { ballast }, { signal }).catch(() => {}),
    100,
  );
  return () => {
    clearInterval(timer);
    stopping.abort();
  };
}

function median(slices: readonly Slice[], key: keyof Slice): number {
  return quantile(
    slices.map((slice) => slice[key]),
    0.5,
  );
}

function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]!;
}

describe("beside a child that", () => {
  test.each([
    ["crashes again and again", "crash"],
    ["answers no call", "hang"],
    ["answers nothing", "mute"],
    ["reads nothing", "deaf"],
    ["prints garbage", "garbage"],
    ["prints garbage between its answers", "babble"],
    ["prints a line without end", "endless"],
    ["prints lines of a single letter", "shreds"],
    ["complains without end", "complaints"],
    ["floods us with log messages", "logs"],
    ["floods us with progress", "progress"],
    ["floods us with changes", "changes"],
    ["floods us with requests", "requests"],
    ["floods us with answers", "answers"],
  ])(
    "%s, the others' p99 stays within twice of what it is without",
    async (_, trouble) => {
      await using at = await startTestGateway({ mcpServers }, { local: { near }, firstListMs: 1000 });
      await using client = await connectTo(at.url);
      const isUp = (): boolean => at.gateway.status().every(({ status }) => status === "up");
      await expect.poll(isUp).toBe(true);
      await measure(at); // To warm up.
      const without: Slice[] = [];
      const beside: Slice[] = [];
      const ratio = (): number => median(beside, "cpuMs") / median(without, "cpuMs");
      // Nobody waits without working, either.
      const isLate = (): boolean => median(beside, "wallMs") >= 2 * median(without, "wallMs") + 20;
      // A machine that is busy with something else for seconds wants more rounds; a child that delays others stays one.
      for (let round = 0; round < rounds || (round < 3 * rounds && (ratio() >= 2 || isLate())); round++) {
        const stopChild = annoy(client, "child");
        without.push(await measure(at));
        stopChild();
        await at.gateway.update({ mcpServers: { ...mcpServers, hostile: hostile(trouble) } });
        const stopHostile = annoy(client, "hostile");
        beside.push(await measure(at));
        stopHostile();
        await at.gateway.update({ mcpServers });
      }
      const show = (slices: readonly Slice[]): string =>
        slices.map(({ cpuMs }) => cpuMs.toFixed(1)).join(" ");
      console.log(
        `${trouble}: ${ratio().toFixed(2)}; p99 without: ${show(without)}, beside: ${show(beside)} ms`,
      );
      expect(ratio()).toBeLessThan(2);
      expect(isLate()).toBe(false);
    },
    600_000,
  );
});
