// Promise 3: one server, however broken, cannot delay another by more than twice. Slices beside it and beside one that works take turns in
// one run. The machine has other things to do, so a call is measured by how long the main thread of this process, clients and gateway, ran
// from its beginning to its end, and the clock of the gateway stands still while other programs run instead.
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { createRegistry } from "../../packages/server/src/registry/registry.ts";
import { connectTo, type GatewayClient } from "./support/clients.ts";
import { startTestGateway } from "./support/gateway.ts";
import { createRunningClock } from "./support/running-time.ts";
import { measureSlice, medianOf, type Slice } from "./support/slice.ts";

const pathOf = (name: string): string =>
  fileURLToPath(new URL(`../fixtures/children/${name}`, import.meta.url));
const healthy = { command: process.execPath, args: [pathOf("chaos-server.mjs")] };
const hostile = (trouble: string): object => ({
  command: process.execPath,
  args: [pathOf("chaos-hostile.mjs"), trouble],
});

/** `node proof/attacks/chaos.mjs hostile` is the long run. */
const isLong = process.env["JUNCTOR_HOSTILE_ROUNDS"] !== undefined;
const rounds = Number(process.env["JUNCTOR_HOSTILE_ROUNDS"] ?? 3);
const mostRounds = Math.max(15, 3 * rounds);
const callsPerSlice = isLong ? 1500 : 1000;
const ballast = "x".repeat(50_000);
const mcpServers = { child: healthy };
/** Measured, because all its work is done in this process; the child only has to answer. */
const near = createRegistry();
near.register("near__work", {}, () => "done");

/** Calls the added child every now and then, with much to read, until the returned function is called. */
function annoy(client: GatewayClient): () => void {
  const stopping = new AbortController();
  const { signal } = stopping;
  const timer = setInterval(
    () => void client.call("hostile__work", { ballast }, { signal }).catch(() => {}),
    100,
  );
  return () => {
    clearInterval(timer);
    stopping.abort();
  };
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
      const clock = createRunningClock();
      await using at = await startTestGateway({ mcpServers }, { local: { near }, firstListMs: 1000, clock });
      /** With a server that was just added: what that costs is not part of its trouble. */
      const measureWith = async (way: string): Promise<Slice> => {
        await at.gateway.update({ mcpServers: { ...mcpServers, hostile: hostile(way) } });
        const stop = annoy(client);
        const slice = await measureSlice(at.listener.port, callsPerSlice);
        stop();
        await at.gateway.update({ mcpServers });
        return slice;
      };
      await using client = await connectTo(at.url);
      const isUp = (): boolean => at.gateway.status().every(({ status }) => status === "up");
      await expect.poll(isUp).toBe(true);
      for (const way of ["no trouble", trouble, "no trouble"]) await measureWith(way); // To warm up.
      const without: Slice[] = [];
      const beside: Slice[] = [];
      const ratio = (): number => medianOf(beside, "p99Ms") / medianOf(without, "p99Ms");
      // Nobody waits without working, either.
      const isLate = (): boolean => medianOf(beside, "medianMs") >= 2 * medianOf(without, "medianMs") + 20;
      // A machine that is busy with something else for seconds wants more rounds; a child that delays others stays one.
      for (let round = 0; round < rounds || (round < mostRounds && (ratio() >= 2 || isLate())); round++) {
        without.push(await measureWith("no trouble"));
        beside.push(await measureWith(trouble));
      }
      const show = (slices: readonly Slice[]): string =>
        slices.map(({ p99Ms }) => p99Ms.toFixed(2)).join(" ");
      console.log(
        `${trouble}: ${ratio().toFixed(2)}; p99 without: ${show(without)}, beside: ${show(beside)} ms`,
      );
      expect([...without, ...beside].filter(({ failures }) => failures > 0)).toEqual([]);
      expect(ratio()).toBeLessThan(2);
      expect(isLate()).toBe(false);
    },
    600_000,
  );
});
