// Promise 3: one server, however broken, cannot delay another by more than twice. Slices with and without it take turns
// in one run, and the medians of their p99 are compared, because the machine has other things to do.
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { connectTo, type GatewayClient } from "./support/clients.ts";
import { startTestGateway, type TestGateway } from "./support/gateway.ts";
import { startLoad } from "./support/load.ts";

const pathOf = (name: string): string =>
  fileURLToPath(new URL(`../fixtures/children/${name}`, import.meta.url));
const healthy = { command: process.execPath, args: [pathOf("chaos-server.mjs")] };
const hostile = (trouble: string): object => ({
  command: process.execPath,
  args: [pathOf("chaos-hostile.mjs"), trouble],
});

const rounds = Number(process.env["JUNCTOR_HOSTILE_ROUNDS"] ?? 5);
const callsPerSlice = 300;
const callsPerSecond = 300;
const servers = ["one", "two", "three"];
const ballast = "x".repeat(50_000);
const healthyServers = Object.fromEntries(servers.map((name) => [name, healthy]));

/** The p99 of the healthy servers' calls in one slice. */
async function measure(at: TestGateway): Promise<number> {
  const load = await startLoad({ port: at.listener.port, servers, callsPerSecond });
  await load.made(callsPerSlice);
  const records = await load.stop();
  expect(records.filter(({ outcome }) => outcome.kind !== "result").slice(0, 3)).toEqual([]);
  return quantile(
    records.map(({ startedAt, endedAt }) => endedAt - startedAt),
    0.99,
  );
}

/** Calls the hostile child every now and then, with much to read, until the returned function is called. */
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
    ["prints a line without end", "endless"],
    ["prints shreds", "shreds"],
    ["prints garbage between its answers", "babble"],
    ["floods us with log messages", "logs"],
    ["floods us with progress", "progress"],
    ["floods us with changes", "changes"],
    ["floods us with requests", "requests"],
    ["floods us with answers", "answers"],
    ["floods its standard error", "complaints"],
  ])(
    "%s, the others' p99 stays within twice of what it is without",
    async (_, trouble) => {
      await using at = await startTestGateway({ mcpServers: healthyServers }, { readyMs: 1000 });
      await using client = await connectTo(at.url);
      await measure(at); // To warm up.
      const without: number[] = [];
      const beside: number[] = [];
      for (let round = 0; round < rounds; round++) {
        without.push(await measure(at));
        await at.gateway.update({ mcpServers: { ...healthyServers, hostile: hostile(trouble) } });
        const stop = annoy(client);
        beside.push(await measure(at));
        stop();
        await at.gateway.update({ mcpServers: healthyServers });
      }
      const ratio = quantile(beside, 0.5) / quantile(without, 0.5);
      const show = (values: readonly number[]): string => values.map((ms) => ms.toFixed(1)).join(" ");
      console.log(`${trouble}: ${ratio.toFixed(2)} (${show(without)} | ${show(beside)})`);
      expect(ratio).toBeLessThan(2);
    },
    120_000,
  );
});
