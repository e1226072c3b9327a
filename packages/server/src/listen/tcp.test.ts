import { PassThrough } from "node:stream";
import { describe, expect, test } from "vitest";
import { envelope, handshake } from "../../../../test/support/conversation.ts";
import { type FrameReader, readFrames, toLine } from "../../../../test/support/raw-wire.ts";
import { createDeferred } from "../../../core/src/async/queue.ts";
import { elicit } from "../../../core/src/mcp/question.ts";
import { inputRequired } from "../../../core/src/provider/content.ts";
import { createVirtualClock, type VirtualClock } from "../../../junctor/src/testing/virtual-clock.ts";
import { createRegistry } from "../registry/registry.ts";
import { createServer } from "../wire/server.ts";
import { serveStream, type ServeStreamOptions } from "./tcp.ts";

interface Piped extends FrameReader {
  readonly clock: VirtualClock;
  readonly output: PassThrough;
  /** How many calls of the tool `held` have begun, and how many of those were aborted. */
  readonly held: { begun: number; aborted: number };
  /** Lets every call of `held` end. */
  release(): void;
  isOver(): boolean;
}

/** Serves messages that are piped in as a file is: all of them, and then the end of input. */
async function pipe(messages: readonly object[], options: ServeStreamOptions = {}): Promise<Piped> {
  const clock = createVirtualClock();
  const released = createDeferred<string>();
  const held = { begun: 0, aborted: 0 };
  const registry = createRegistry();
  registry.register("held", {}, (_, { signal }) => {
    held.begun++;
    signal.addEventListener("abort", () => void held.aborted++);
    return released.promise;
  });
  registry.register("ask", {}, (_, { answers }) =>
    answers.elicited("name") === undefined
      ? inputRequired({ name: elicit("Your name?", { name: { type: "string" } }, ["name"]) })
      : "answered",
  );
  const server = createServer(registry, { name: "test-server", version: "1" }, { clock });
  const input = new PassThrough();
  const output = new PassThrough();
  const reader = readFrames(output);
  let isOver = false;
  void serveStream(server, input, output, { clock, ...options }).then(() => (isOver = true));
  for (const message of messages) input.write(toLine({ jsonrpc: "2.0", ...message }));
  input.end();
  await expect.poll(() => input.readableEnded).toBe(true);
  return { ...reader, clock, output, held, release: () => released.resolve("late"), isOver: () => isOver };
}

const callHeld = (id: number): object => ({
  id,
  method: "tools/call",
  params: { name: "held", _meta: envelope() },
});

describe("when the input ends", () => {
  test("100 requests that were read are answered, however late", async () => {
    const ids = Array.from({ length: 100 }, (_, id) => id);
    const piped = await pipe(ids.map(callHeld));
    await expect.poll(() => piped.held.begun).toBeGreaterThan(0);
    await piped.clock.advance(1000);
    expect(piped.held.begun).toBe(100);
    await piped.clock.advance(9 * 60_000);
    expect([piped.held.aborted, piped.isOver()]).toEqual([0, false]);
    piped.release();
    await expect.poll(piped.isOver).toBe(true);
    const answers = piped.frames.toSorted((a, b) => Number(a.id) - Number(b.id));
    expect(answers.map(({ id, result }) => [id, result !== undefined])).toEqual(ids.map((id) => [id, true]));
    expect(piped.clock.sleeping).toBe(0);
  });

  test("a request without an end is aborted after lingerMs", async () => {
    const piped = await pipe([callHeld(1)], { lingerMs: 5000, graceMs: 1000 });
    await expect.poll(() => piped.held.begun).toBe(1);
    await piped.clock.advance(4999);
    expect(piped.held.aborted).toBe(0);
    await piped.clock.advance(1);
    expect(piped.held.aborted).toBe(1);
    await piped.clock.advance(1000);
    await expect.poll(piped.isOver).toBe(true);
    expect(piped.frames).toMatchObject([{ id: 1, error: { data: { delivery: "outcome_unknown" } } }]);
  });

  test("a request is aborted when its reader leaves", async () => {
    const piped = await pipe([callHeld(1)], { stopMs: 0 });
    await expect.poll(() => piped.held.begun).toBe(1);
    await piped.clock.advance(60_000);
    expect(piped.held.aborted).toBe(0);
    piped.output.destroy();
    await piped.clock.advance(0);
    expect(piped.held.aborted).toBe(1);
  });

  test("a request is aborted after stopMs when the server is told to stop", async () => {
    const stopping = new AbortController();
    const piped = await pipe([callHeld(1)], { signal: stopping.signal, stopMs: 250 });
    await expect.poll(() => piped.held.begun).toBe(1);
    await piped.clock.advance(60_000);
    stopping.abort();
    await piped.clock.advance(249);
    expect(piped.held.aborted).toBe(0);
    await piped.clock.advance(1);
    expect(piped.held.aborted).toBe(1);
  });

  test("a call that asks the client something ends at once, and its answer says why", async () => {
    const piped = await pipe([
      { id: 0, method: "initialize", params: handshake("2025-11-25", { elicitation: {} }) },
      { method: "notifications/initialized" },
      { id: 1, method: "tools/call", params: { name: "ask" } },
    ]);
    await expect.poll(piped.isOver).toBe(true);
    expect(piped.frames.at(-1)).toMatchObject({
      id: 1,
      result: {
        isError: true,
        content: [{ text: "The client left before it answered elicitation/create." }],
      },
    });
    expect(piped.clock.now()).toBe(0);
  });

  test("a stream of change notifications ends with its result", async () => {
    const params = { notifications: { toolsListChanged: true }, _meta: envelope() };
    const piped = await pipe([{ id: 1, method: "subscriptions/listen", params }]);
    await expect.poll(piped.isOver).toBe(true);
    expect(piped.frames.map(({ id, method }) => id ?? method)).toEqual([
      "notifications/subscriptions/acknowledged",
      1,
    ]);
    expect(piped.clock.now()).toBe(0);
  });

  test("the last answers leave at the pace of their reader", async () => {
    const piped = await pipe([callHeld(1)], { closeMs: 1000 });
    await expect.poll(() => piped.held.begun).toBe(1);
    piped.output.pause();
    piped.release();
    await piped.clock.advance(60_000);
    expect([piped.frames.length, piped.isOver()]).toEqual([0, false]);
    piped.output.resume();
    await expect.poll(piped.isOver).toBe(true);
    expect(piped.frames).toMatchObject([{ id: 1, result: {} }]);
  });
});
