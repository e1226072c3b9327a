import { describe, expect, test } from "vitest";
import { createRawWire, type RawWire } from "../../../../test/support/raw-wire.ts";
import { createVirtualClock, type VirtualClock } from "../../../junctor/src/testing/virtual-clock.ts";
import { createDeferred } from "../async/queue.ts";
import { RawJson } from "../json/raw.ts";
import type { Server } from "../mcp/server.ts";
import { serveChannel } from "./serve-channel.ts";

interface Serving {
  readonly wire: RawWire;
  readonly clock: VirtualClock;
  readonly stopping: AbortController;
  readonly draining: AbortController;
  /** Ends the request that runs, with a result. */
  finish(): void;
  /** The signal of the request that runs. */
  signal(): AbortSignal;
  isOver(): boolean;
}

/** Serves a channel with one request that takes as long as the test wants. */
async function serveOne(): Promise<Serving> {
  const clock = createVirtualClock();
  const wire = createRawWire({ clock });
  const stopping = new AbortController();
  const draining = new AbortController();
  const result = createDeferred<RawJson>();
  let signal: AbortSignal | undefined;
  const server: Server = {
    serves: "both",
    parseErrorCode: -32700,
    handle: (_, context) => {
      signal = context.cancellation.signal;
      return result.promise;
    },
    attach: () => () => {},
    drain: () => {},
  };
  let isOver = false;
  const signals = { signal: stopping.signal, drain: draining.signal };
  const options = { clock, ...signals, lingerMs: 250, graceMs: 2000 };
  void serveChannel(server, wire.channel, options).then(() => (isOver = true));
  wire.send({ jsonrpc: "2.0", id: 1, method: "ping" });
  await expect.poll(() => signal, { interval: 1 }).toBeDefined();
  return {
    wire,
    clock,
    stopping,
    draining,
    finish: () => result.resolve(RawJson.fromText("{}")),
    signal: () => signal as AbortSignal,
    isOver: () => isOver,
  };
}

/** The error for a request that was given up. */
const givenUp = {
  code: -32603,
  message: expect.stringContaining("may have been carried out") as string,
  data: { code: "channel.closed", delivery: "outcome_unknown" },
};

describe.each([
  ["the input ends", ({ wire }: Serving) => wire.end()],
  ["the server is stopped", ({ stopping }: Serving) => stopping.abort()],
])("when %s", (_, stop) => {
  test("a request may still end, and is answered", async () => {
    const serving = await serveOne();
    stop(serving);
    await serving.clock.advance(249);
    serving.finish();
    await expect(serving.wire.take()).resolves.toMatchObject({ id: 1, result: {} });
    await expect.poll(serving.isOver, { interval: 1 }).toBe(true);
    expect(serving.clock.now()).toBe(249);
  });

  test("a request that takes too long is aborted and answered with an error, once", async () => {
    const serving = await serveOne();
    stop(serving);
    await serving.clock.advance(249);
    expect(serving.signal().aborted).toBe(false);
    await serving.clock.advance(1);
    expect(serving.signal().aborted).toBe(true);
    expect(serving.isOver()).toBe(false);
    serving.finish();
    await expect.poll(serving.isOver, { interval: 1 }).toBe(true);
    expect(serving.wire.lines.map((line) => JSON.parse(line) as object)).toEqual([
      { jsonrpc: "2.0", id: 1, error: givenUp },
    ]);
  });

  test("a request that its client cancelled is not answered", async () => {
    const serving = await serveOne();
    serving.wire.send({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 1 } });
    await expect.poll(() => serving.signal().aborted, { interval: 1 }).toBe(true);
    stop(serving);
    await serving.clock.advance(2250);
    await expect.poll(serving.isOver, { interval: 1 }).toBe(true);
    expect(serving.wire.lines).toEqual([]);
  });

  test("a request that ignores its signal is left behind", async () => {
    const serving = await serveOne();
    stop(serving);
    await serving.clock.advance(2249);
    expect(serving.isOver()).toBe(false);
    await serving.clock.advance(1);
    await expect.poll(serving.isOver, { interval: 1 }).toBe(true);
    expect(serving.clock.sleeping).toBe(0);
    await expect(serving.wire.take()).resolves.toMatchObject({ id: 1, error: givenUp });
  });
});

describe("a channel that is drained", () => {
  test("lets a request run as long as it takes, refuses others, and ends with its answer", async () => {
    const serving = await serveOne();
    serving.draining.abort();
    await serving.clock.advance(60_000);
    expect(serving.signal().aborted).toBe(false);
    serving.wire.send({ jsonrpc: "2.0", id: 2, method: "ping" });
    await expect(serving.wire.take()).resolves.toMatchObject({ id: 2, error: { code: -32603 } });
    expect(serving.isOver()).toBe(false);
    serving.finish();
    await expect(serving.wire.take()).resolves.toMatchObject({ id: 1, result: {} });
    await expect.poll(serving.isOver, { interval: 1 }).toBe(true);
  });

  test("aborts the request soon when the other side leaves", async () => {
    const serving = await serveOne();
    serving.draining.abort();
    serving.wire.end();
    await serving.clock.advance(250);
    expect(serving.signal().aborted).toBe(true);
  });
});

test("a channel that is drained before it began ends at once", async () => {
  const wire = createRawWire();
  const server = { serves: "both", parseErrorCode: -32700, attach: () => () => {} } as unknown as Server;
  await expect(serveChannel(server, wire.channel, { drain: AbortSignal.abort() })).resolves.toBeUndefined();
});

test("a channel that is stopped before it began ends at once", async () => {
  const wire = createRawWire();
  const server = { serves: "both", parseErrorCode: -32700, attach: () => () => {} } as unknown as Server;
  await expect(serveChannel(server, wire.channel, { signal: AbortSignal.abort() })).resolves.toBeUndefined();
});
