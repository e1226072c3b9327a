import { spawn } from "node:child_process";
import { once } from "node:events";
import type { Clock } from "../../../packages/core/src/async/clock.ts";
import { createRegistry } from "../../../packages/server/src/registry/registry.ts";
import { startTestGateway, type TestGateway } from "../../../test/gateway/support/gateway.ts";
import { Callers } from "../../../test/gateway/support/load.ts";
import { createRunningClock } from "../../../test/gateway/support/running-time.ts";
import { measureSlice, medianOf, type Slice } from "../../../test/gateway/support/slice.ts";
import { fixture, hostile } from "./gateway.ts";

/** An entry of `mcpServers`. */
export type Entry = { readonly command: string; readonly args: readonly string[] } | { readonly url: string };

/** A server of `hostile.mjs`; disposing it ends it. */
interface StartedServer extends Disposable {
  readonly entry: Entry;
}

/** Starts a hostile server over one transport. On stdio the gateway starts it. */
export async function startHostile(kind: string, transport: "stdio" | "http"): Promise<StartedServer> {
  const args = [hostile("hostile.mjs"), kind];
  if (transport === "stdio")
    return { entry: { command: process.execPath, args }, [Symbol.dispose]: () => {} };
  const child = spawn(process.execPath, [...args, "--http"], { stdio: ["ignore", "pipe", "inherit", "ipc"] });
  const [port] = (await once(child.stdout!, "data")) as [Buffer];
  return {
    entry: { url: `http://127.0.0.1:${Number(port.toString())}/mcp` },
    [Symbol.dispose]: () => void child.kill("SIGKILL"),
  };
}

const good = { child: { command: process.execPath, args: [fixture("children/chaos-server.mjs")] } };

/** What the callers of good servers noticed of a hostile one. */
export interface Beside {
  /** The p99 beside it by the p99 beside a quiet one. */
  readonly ratio: number;
  readonly withoutMs: number;
  readonly besideMs: number;
  readonly medianMs: number;
  readonly calls: number;
  readonly failures: number;
  /** Most memory beside it more than before. */
  readonly grownBytes: number;
}

export interface BesideOptions {
  readonly rounds: number;
  readonly callsPerSlice: number;
  readonly transport: "stdio" | "http";
}

/**
 * Measures good servers beside a hostile one and beside a quiet one in its place, in slices that take turns. Both are added to the config before their
 * slice and removed after it, and both are called. The calls right after that are made and not timed: a gateway whose config was changed runs
 * code that is not compiled yet, which makes calls slower than a flood does, and would hide it.
 *
 * Clients and gateway are this process. A call costs the time for which its main thread runs from the beginning of the call to its end, and the
 * clock of the gateway stands still while this process waits for a processor. So a busy machine gives the figures of an idle one.
 */
export async function measureBeside(kind: string, options: BesideOptions): Promise<Beside> {
  const { rounds, callsPerSlice, transport } = options;
  const near = createRegistry();
  near.register("near__work", {}, () => "done");
  const config = { mcpServers: good, junctor: { servers: {} } };
  const clock = createRunningClock();
  await using at = await startTestGateway(config, { local: { near }, firstListMs: 3000, clock });
  using quiet = await startHostile("quiet", transport);
  using hostile = await startHostile(kind, transport);
  const measureWith = async (other: Entry): Promise<MemorySlice> => {
    globalThis.gc?.();
    const before = process.memoryUsage.rss();
    await at.gateway.update({ ...config, mcpServers: { ...good, hostile: other } });
    using watch = watchMemory();
    using _calls = callNowAndThen(at, clock);
    const first = await measureSlice(at.listener.port, callsPerSlice / 2);
    const slice = await measureSlice(at.listener.port, callsPerSlice);
    await at.gateway.update(config);
    return { ...slice, failures: first.failures + slice.failures, grownBytes: watch.peak() - before };
  };
  // The first slices are not timed, for the same reason.
  const first = [await measureSlice(at.listener.port, callsPerSlice)];
  for (const { entry } of [quiet, hostile, quiet]) first.push(await measureWith(entry));
  const without: MemorySlice[] = [];
  const beside: MemorySlice[] = [];
  const ratio = (): number => medianOf(beside, "p99Ms") / medianOf(without, "p99Ms");
  for (let round = 0; round < rounds || (round < 3 * rounds && ratio() >= 2); round++) {
    beside.push(await measureWith(hostile.entry));
    without.push(await measureWith(quiet.entry));
  }
  const all = [...first, ...without, ...beside];
  return {
    ratio: ratio(),
    withoutMs: medianOf(without, "p99Ms"),
    besideMs: medianOf(beside, "p99Ms"),
    medianMs: medianOf(beside, "medianMs"),
    calls: (without.length + beside.length) * callsPerSlice,
    failures: all.reduce((sum, slice) => sum + slice.failures, 0),
    grownBytes: Math.max(...beside.map((slice) => slice.grownBytes)),
  };
}

interface MemorySlice extends Slice {
  /** Most memory during the slice more than before. */
  readonly grownBytes: number;
}

/** Calls the added server ten times a second, as its own callers do, until it is disposed. */
function callNowAndThen({ listener }: TestGateway, clock: Clock): Disposable {
  const callers = new Callers(listener.port, undefined);
  let stop = (): void => {};
  const callLater = (): void => {
    stop = clock.timer(100, () => {
      void callers.call("hostile__work", { nonce: "n" }).catch(() => {});
      callLater();
    });
  };
  callLater();
  return {
    [Symbol.dispose]: () => {
      stop();
      callers[Symbol.dispose]();
    },
  };
}

function watchMemory(): Disposable & { peak(): number } {
  let most = 0;
  const look = (): void => {
    most = Math.max(most, process.memoryUsage.rss());
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
