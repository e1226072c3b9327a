import { describe, expect, test } from "vitest";
import { createSeal } from "../../packages/core/src/mcp/seal.ts";
import { createVirtualClock } from "../../packages/junctor/src/testing/virtual-clock.ts";
import { createMemoryEventStore, type EventStore } from "../../packages/server/src/http/event-store.ts";
import { listen } from "../support/http-tools.ts";
import { connectLegacy, initializeOf, legacyCall, postOf } from "../support/http-wire.ts";
import { exchange } from "../support/raw-http.ts";

const minuteMs = 60_000;
const ping = { jsonrpc: "2.0", id: 1, method: "ping" };
const progressToken = { progressToken: "t" };

/** A store that counts the streams it holds. */
function createCountingStore(): EventStore & { readonly streams: Set<string> } {
  const store = createMemoryEventStore();
  const streams = new Set<string>();
  return {
    ...store,
    streams,
    append: (stream, data) => {
      streams.add(stream);
      return store.append(stream, data);
    },
    forget: (stream) => {
      streams.delete(stream);
      return store.forget(stream);
    },
  };
}

describe("what is kept of a session", () => {
  test("is dropped when it was not used for five minutes, and its id is still good", async () => {
    const clock = createVirtualClock();
    const events = createCountingStore();
    await using at = await listen({ clock, events });
    using wire = await connectLegacy(at.port);
    await (
      await wire.post(legacyCall(5, "burst", { count: 2 }, progressToken))
    ).complete;
    expect(events.streams.size).toBe(1);
    await clock.advance(5 * minuteMs + 1);
    using other = await connectLegacy(at.port);
    await other.ask(ping);
    expect(events.streams.size).toBe(0);
    expect((await wire.ask(ping)).result).toEqual({});
  });

  test("is dropped for good when its id has expired, by the clock of the endpoint", async () => {
    const clock = createVirtualClock();
    await using at = await listen({ clock, sessionTtlMs: 10 * minuteMs });
    using wire = await connectLegacy(at.port);
    await clock.advance(10 * minuteMs);
    using other = await connectLegacy(at.port);
    await other.ask(ping);
    expect((await wire.post(ping)).status).toBe(404);
  });

  test("is kept as long as a call runs, and the client then has five minutes to come for the result", async () => {
    const clock = createVirtualClock();
    await using at = await listen({ clock });
    using wire = await connectLegacy(at.port);
    using other = await connectLegacy(at.port);
    const sent = await (await wire.post(legacyCall(5, "poll"))).complete;
    await clock.advance(20 * minuteMs);
    await other.ask(ping);
    at.steps.allow();
    // The next request sweeps; the session was last asked for something 20 minutes ago, but its call ended just now.
    await clock.advance(minuteMs);
    await other.ask(ping);
    const rest = await wire.get(sent.events[0]!.id).reply.complete;
    expect(rest.messages).toMatchObject([{ id: 5, result: { content: [{ text: "worth the wait" }] } }]);
  });

  test("is kept as long as its stream is open", async () => {
    const clock = createVirtualClock();
    await using at = await listen({ clock });
    using wire = await connectLegacy(at.port);
    using other = await connectLegacy(at.port);
    const reply = await wire.get().reply.head;
    await clock.advance(60 * minuteMs);
    await other.ask(ping);
    at.registry.register("sprout", {}, () => "grown");
    await reply.message(1);
  });

  test("holds the last 64 streams that ended, not all of them", async () => {
    const events = createCountingStore();
    await using at = await listen({ events });
    using wire = await connectLegacy(at.port);
    const first = await (await wire.post(legacyCall(0, "burst", { count: 1 }, progressToken))).complete;
    for (let id = 1; id <= 70; id++)
      await (
        await wire.post(legacyCall(id, "burst", { count: 1 }, progressToken))
      ).complete;
    expect(events.streams.size).toBe(64);
    expect((await wire.get(first.events[0]!.id).reply.complete).status).toBe(400);
  });

  test("its events go with it when it is deleted, and when its stream is opened again", async () => {
    const events = createCountingStore();
    await using at = await listen({ events });
    using wire = await connectLegacy(at.port);
    await (
      await wire.post(legacyCall(5, "burst", { count: 2 }, progressToken))
    ).complete;
    const { reply, socket } = wire.get();
    await reply.event(1);
    expect(events.streams.size).toBe(2);
    socket.cut();
    await expect.poll(async () => (await wire.get().reply.head).status).toBe(200);
    expect(events.streams.size).toBe(2);
    await wire.delete();
    await expect.poll(() => events.streams.size).toBe(0);
  });
});

describe("too many sessions", () => {
  test("make room by dropping the one that was idle longest; its id is still good", async () => {
    await using at = await listen({ maxSessions: 3 });
    const wires = [];
    for (let index = 0; index < 10; index++) wires.push(await connectLegacy(at.port));
    for (const wire of wires) {
      expect((await wire.ask(ping)).result).toEqual({});
      wire[Symbol.dispose]();
    }
  });

  test("that are all busy keep out new ones, with 503, and are left alone", async () => {
    await using at = await listen({ maxSessions: 2 });
    const busy = [await connectLegacy(at.port), await connectLegacy(at.port)];
    const calls = busy.map(
      (wire, key) => wire.open(legacyCall(5, "wait", { key: `${key}` }, progressToken)).reply,
    );
    await Promise.all(calls.map((reply) => reply.message(1)));
    const refused = await exchange(at.port, postOf(initializeOf("2025-11-25")));
    expect([refused.status, refused.json]).toMatchObject([503, { error: { code: -32603 } }]);
    expect([...at.waits.values()]).toEqual(["running", "running"]);
    await busy[0]!.delete();
    expect((await exchange(at.port, postOf(initializeOf("2025-11-25")))).status).toBe(200);
    for (const wire of busy) wire[Symbol.dispose]();
  });
});

test("a session has at most 1,024 calls in flight, also when nobody waits for them", async () => {
  await using at = await listen();
  using wire = await connectLegacy(at.port, "2025-03-26");
  for (let start = 0; start < 1024; start += 128) {
    const batch = Array.from({ length: 128 }, (_, index) => legacyCall(start + index, "silent"));
    wire.open(batch).socket.socket.end();
  }
  const answer = async (): Promise<number | undefined> =>
    (await wire.ask(legacyCall("one more", "echo", { message: "hi" }))).error?.code;
  await expect.poll(answer).toBe(-32603);
  at.steps.allow(1024);
  await expect.poll(answer).toBeUndefined();
});

describe("an id", () => {
  test("is good for a day", async () => {
    let now = 0;
    const clock = { ...createVirtualClock(), now: () => now };
    await using at = await listen({ clock, seal: createSeal({ now: () => now }), sessionIdleMs: minuteMs });
    using wire = await connectLegacy(at.port);
    now = 24 * 60 * minuteMs - 1;
    expect((await wire.post(ping)).status).toBe(200);
    now += 2 * minuteMs;
    using other = await connectLegacy(at.port);
    await other.ask(ping);
    expect((await wire.post(ping)).status).toBe(404);
  });

  test("that was deleted is not good again while it would have been", async () => {
    const clock = createVirtualClock();
    await using at = await listen({ clock });
    using wire = await connectLegacy(at.port);
    await wire.delete();
    await clock.advance(23 * 60 * minuteMs);
    expect((await wire.post(ping)).status).toBe(404);
  });
});
