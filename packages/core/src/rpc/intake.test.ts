import { expect, test } from "vitest";
import { createVirtualClock } from "../../../junctor/src/testing/virtual-clock.ts";
import { createDeferred } from "../async/queue.ts";
import { ClosedError } from "../errors/index.ts";
import { RawJson } from "../json/raw.ts";
import type { Channel, Incoming } from "./channel.ts";
import { toRequestId } from "./message.ts";
import { Peer } from "./peer.ts";
import type { Handler } from "./requests.ts";

const ok = RawJson.fromText('"ok"');

test("reading stops when the other side does not take the answers", async () => {
  const { channel, pulled, answers } = createFlood(5000);
  const peer = new Peer(channel, { handle: () => Promise.resolve(ok) });
  const ended = peer.run();
  for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve));
  expect(pulled()).toBeLessThan(1200);
  answers.forEach((taken) => taken());
  await ended;
  await peer.idle();
  expect(answers).toHaveLength(5000);
});

test("requests that are held are never started for a reader that left", async () => {
  const { channel, begun, leave } = createStalled();
  const peer = new Peer(channel, {
    handle: ({ id }) => {
      begun.push(id);
      return ok;
    },
  });
  void peer.run();
  await expect.poll(() => begun.length).toBe(64);
  leave();
  await peer.idle();
  expect(begun).toHaveLength(64);
});

test("requests with long answers are started one after the other, as the answers are taken", async () => {
  const { channel, answers } = createFlood(100);
  const long = RawJson.fromText(`"${"x".repeat(4 * 1024 * 1024)}"`);
  const begun: (() => void)[] = [];
  const handle: Handler = () => new Promise((resolve) => begun.push(() => resolve(long)));
  const peer = new Peer(channel, { handle, clock: createVirtualClock() });
  void peer.run();
  await expect.poll(() => begun.length).toBe(65);
  for (let ended = 0; ended < 100; ended++) {
    begun[ended]?.();
    await expect.poll(() => answers.length).toBe(ended + 1);
    answers[ended]?.();
    await expect.poll(() => Math.max(65, ended + 1)).toBeLessThanOrEqual(begun.length);
    expect(begun.length).toBeLessThanOrEqual(Math.max(65, ended + 18));
  }
  await peer.idle();
});

test("requests wait a moment only behind slow ones of a client that reads everything, and pings not at all", async () => {
  const clock = createVirtualClock();
  const { channel, answers } = createFlood(200, (id) => (id === 199 ? "ping" : "x"));
  const begun: string[] = [];
  const handle: Handler = ({ id, method }) => {
    begun.push(method);
    // The first are slow; the others are answered at once.
    return Number(id) < 70 ? new Promise(() => {}) : ok;
  };
  const peer = new Peer(channel, { handle, clock });
  void peer.run();
  await expect.poll(() => begun).toContain("ping");
  expect(begun).toHaveLength(66);
  await expect.poll(() => answers.length).toBe(1);
  answers.forEach((taken) => taken());
  await new Promise((resolve) => setImmediate(resolve));
  await clock.advance(100);
  await expect.poll(() => answers.length).toBeGreaterThan(50);
});

test("requests that are held when a handler stops the peer are answered once each", async () => {
  const { channel, answers } = createFlood(100);
  const begun: unknown[] = [];
  const peer: Peer = new Peer(channel, {
    handle: ({ id }) => {
      begun.push(id);
      if (begun.length === 65) peer.stop();
      return ok;
    },
  });
  void peer.run();
  await expect.poll(() => begun.length).toBe(64);
  answers.forEach((taken) => taken());
  await peer.idle();
  expect(begun).toHaveLength(65);
  expect(answers).toHaveLength(100);
});

/** A channel that brings requests as fast as they are read, and takes no answer before the test does. */
function createFlood(
  count: number,
  methodOf: (id: number) => string = () => "x",
): {
  channel: Channel;
  pulled: () => number;
  answers: (() => void)[];
} {
  const answers: (() => void)[] = [];
  let pulled = 0;
  let isStalled = true;
  const channel: Channel = {
    async *[Symbol.asyncIterator](): AsyncGenerator<readonly Incoming[]> {
      while (pulled < count)
        yield [{ kind: "request", id: toRequestId(pulled), method: methodOf(pulled++), params: undefined }];
    },
    send: () =>
      new Promise((resolve) => {
        answers.push(() => {
          isStalled = false;
          resolve();
        });
        if (!isStalled) resolve();
      }),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
  return { channel, pulled: () => pulled, answers };
}

/** A channel that brings 100 requests, takes no answer, and then is left by its reader. */
function createStalled(): { channel: Channel; begun: unknown[]; leave: () => void } {
  const left = createDeferred<void>();
  const channel: Channel = {
    async *[Symbol.asyncIterator](): AsyncGenerator<readonly Incoming[]> {
      for (let id = 0; id < 100; id++)
        yield [{ kind: "request", id: toRequestId(id), method: "x", params: undefined }];
      await left.promise.catch(() => {});
    },
    send: () => left.promise,
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
  return { channel, begun: [], leave: () => left.reject(new ClosedError("not_sent", "the reader is gone")) };
}
