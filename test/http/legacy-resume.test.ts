import * as fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createMemoryEventStore, type EventStore } from "../../packages/server/src/http/event-store.ts";
import { type Listening, listen } from "../support/http-tools.ts";
import { connectLegacy, type HttpWire, json, legacyCall } from "../support/http-wire.ts";
import type { RawEvent, RawReply } from "../support/raw-http.ts";

const progressToken = { progressToken: "t" };

let at: Listening;
beforeEach(async () => void (at = await listen()));
afterEach(() => at[Symbol.asyncDispose]());

/** Reads a call's stream, cutting the connection after so many events each time, until its result is there. */
async function readWithCuts(
  wire: HttpWire,
  count: number,
  cuts: readonly number[],
): Promise<readonly RawEvent[]> {
  const events: RawEvent[] = [];
  let { reply, socket } = wire.open(legacyCall(5, "burst", { count }, progressToken));
  for (const cut of cuts) {
    await reply.until("there was enough", ({ events, isComplete }) => isComplete || events.length >= cut);
    events.push(...reply.events.slice(0, cut));
    socket.cut();
    if (isResult(events.at(-1))) return events;
    const lastId = events.findLast(({ id }) => id !== undefined)?.id;
    if (lastId === undefined) throw new Error("nothing to go on with");
    ({ reply, socket } = wire.get(lastId));
    await reply.head;
  }
  await reply.complete;
  return [...events, ...reply.events];
}

function isResult(event: RawEvent | undefined): boolean {
  return event?.data !== undefined && event.data.includes('"result"');
}

function textsOf(events: readonly RawEvent[]): readonly unknown[] {
  const data = events.map((event) => event.data).filter((text) => text !== undefined && text !== "");
  return data.map((text) => {
    const message = JSON.parse(text!) as { params?: { message: string }; result?: object };
    return message.params?.message ?? message.result;
  });
}

describe.each(["2025-03-26", "2025-06-18", "2025-11-25"] as const)(
  "a stream of %s that breaks",
  (revision) => {
    let wire: HttpWire;
    beforeEach(async () => void (wire = await connectLegacy(at.port, revision)));
    afterEach(() => wire[Symbol.dispose]());

    test("wherever it breaks, and however often, is read whole: nothing is lost, nothing comes twice", async () => {
      const cuts = fc.array(fc.integer({ min: 1, max: 7 }), { maxLength: 8 });
      await fc.assert(
        fc.asyncProperty(fc.integer({ min: 1, max: 20 }), cuts, async (count, places) => {
          const events = await readWithCuts(wire, count, places);
          const pieces = Array.from({ length: count }, (_, index) => `piece ${index + 1}`);
          expect(textsOf(events)).toEqual([...pieces, { content: [{ type: "text", text: "done" }] }]);
          const ids = events.map(({ id }) => id);
          expect(new Set(ids).size).toBe(ids.length);
        }),
        { numRuns: 40 },
      );
    });

    test("while the tool goes on is read whole, the replay and what comes live", async () => {
      const { reply, socket } = wire.open(legacyCall(5, "recite", {}, progressToken));
      at.steps.allow();
      await reply.message(1);
      socket.cut();
      at.steps.allow();
      const rest = await wire.get(reply.events.at(-1)!.id).reply.head;
      await rest.message(1);
      expect(rest.isComplete).toBe(false);
      at.steps.allow(2);
      await rest.complete;
      expect(textsOf([...reply.events, ...rest.events])).toEqual([
        "one ",
        "two ",
        "three",
        { content: [{ type: "text", text: "one two three" }] },
      ]);
    });

    test("can be read again from any place after its end", async () => {
      const whole = await (await wire.post(legacyCall(5, "burst", { count: 5 }, progressToken))).complete;
      for (const [index, { id }] of whole.events.entries()) {
        const rest = await wire.get(id).reply.complete;
        expect(rest.events).toEqual(whole.events.slice(index + 1));
        expect(rest.headers["content-type"]).toContain("text/event-stream");
      }
    });

    test("is not resumed after an event that it never sent, and nothing is disclosed", async () => {
      const whole = await (await wire.post(legacyCall(5, "burst", { count: 3 }, progressToken))).complete;
      const [stream] = whole.events[0]!.id!.split(":");
      const wrong = [
        "",
        "x",
        ":",
        "0",
        `${stream}`,
        `${stream}:`,
        `${stream}:99`,
        `${stream}:-1`,
        `${stream}:1.5`,
      ];
      for (const id of [
        ...wrong,
        `${stream}:1e0`,
        `${stream}:0x1`,
        `${stream}: 1`,
        `x${stream}:0`,
        `${stream}:9`.repeat(99),
      ]) {
        const reply = await wire.get(id).reply.complete;
        expect([id, reply.status, reply.headers["content-type"]]).toEqual([id, 400, json]);
        expect(reply.body).not.toContain("piece");
      }
    });

    test("is not resumed by another session", async () => {
      const whole = await (await wire.post(legacyCall(5, "burst", { count: 3 }, progressToken))).complete;
      using other = await connectLegacy(at.port, revision);
      const reply = await other.get(whole.events[0]!.id).reply.complete;
      expect(reply.status).toBe(400);
      expect(reply.body).not.toContain("piece");
    });

    test("goes on only with its own messages, not those of another", async () => {
      const first = await (await wire.post(legacyCall(5, "burst", { count: 3 }, progressToken))).complete;
      const other = legacyCall(6, "burst", { count: 3 }, { progressToken: "other" });
      await (
        await wire.post(other)
      ).complete;
      const again = await wire.get(first.events[0]!.id).reply.complete;
      expect(JSON.stringify(again.messages)).not.toContain("other");
    });
  },
);

test("a client that is sent away comes back for the result", async () => {
  using wire = await connectLegacy(at.port, "2025-11-25");
  const sent = await (await wire.post(legacyCall(5, "poll"))).complete;
  expect(sent.events).toEqual([{ id: expect.any(String) as string, retry: "1000", data: "" }]);
  const waiting = await wire.get(sent.events[0]!.id).reply.head;
  expect(waiting.isComplete).toBe(false);
  at.steps.allow();
  await waiting.complete;
  expect(waiting.messages).toMatchObject([{ id: 5, result: { content: [{ text: "worth the wait" }] } }]);
});

test.each(["2025-03-26", "2025-06-18"] as const)("a client of %s is not sent away", async (revision) => {
  using wire = await connectLegacy(at.port, revision);
  const { reply } = wire.open(legacyCall(5, "poll"));
  at.steps.allow();
  await reply.complete;
  expect(reply.json).toMatchObject({ id: 5, result: { content: [{ text: "worth the wait" }] } });
});

test("a reader that vanished does not hold up the client that comes back", async () => {
  await using large = await listen({ events: createMemoryEventStore({ maxStreamBytes: 32 * 1024 * 1024 }) });
  const message = "x".repeat(60_000);
  let sent = 0;
  large.registry.register("flood", {}, async function* () {
    for (; sent < 300; sent++) yield { type: "progress", progress: sent, message };
    return "done";
  });
  using wire = await connectLegacy(large.port, "2025-11-25");
  const { reply, socket } = wire.open(legacyCall(5, "flood", {}, progressToken));
  await reply.event(1);
  socket.socket.pause(); // As if the network were gone: nothing is read, and nothing is closed.
  let before = -1;
  const isStuck = (): boolean => before === (before = sent);
  await expect.poll(isStuck).toBe(true);
  const rest = wire.get(reply.events[0]!.id).reply;
  await rest.complete;
  expect(before).toBeLessThan(300);
  const numbers = rest.messages.map(({ params }) => params?.["progress"]);
  expect(numbers).toEqual([...Array.from({ length: 300 }, (_, index) => index), undefined]);
});

test("resuming before the oldest event that is kept is an error", async () => {
  const events = createMemoryEventStore({ maxStreamBytes: 2000 });
  await using small = await listen({ events });
  using wire = await connectLegacy(small.port, "2025-11-25");
  const whole = await (await wire.post(legacyCall(5, "burst", { count: 50 }, progressToken))).complete;
  expect((await wire.get(whole.events[0]!.id).reply.complete).status).toBe(400);
  const near = await wire.get(whole.events.at(-3)!.id).reply.complete;
  expect(near.events).toEqual(whole.events.slice(-2));
});

test("two connections that resume at once leave one of them, with everything", async () => {
  using wire = await connectLegacy(at.port, "2025-11-25");
  const { reply, socket } = wire.open(legacyCall(5, "recite", {}, progressToken));
  at.steps.allow();
  await reply.message(1);
  socket.cut();
  const last = reply.events.at(-1)!.id;
  const both = [wire.get(last).reply, wire.get(last).reply];
  await Promise.all(both.map(({ head }) => head.catch(() => undefined)));
  at.steps.allow(3);
  const isSettled = ({ isComplete, isClosed }: RawReply): boolean => isComplete || isClosed;
  await Promise.all(both.map((one) => one.until("it was over", isSettled)));
  const texts = both.map(({ events }) => textsOf(events)).toSorted((a, b) => b.length - a.length);
  expect(texts[0]).toHaveLength(3);
  expect(texts[1]!.length).toBeLessThan(3);
});

describe("another store", () => {
  /** Every answer comes late, as from a database. */
  function createLateStore(): EventStore {
    const store = createMemoryEventStore();
    const late = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
    return {
      append: async (stream, data) => (await late(), store.append(stream, data)),
      after: async (eventId) => (await late(), store.after(eventId)),
      forget: async (stream) => (await late(), store.forget(stream)),
    };
  }

  test("that answers late serves as well", async () => {
    await using late = await listen({ events: createLateStore() });
    using wire = await connectLegacy(late.port, "2025-11-25");
    const events = await readWithCuts(wire, 10, [2, 1, 3]);
    expect(textsOf(events)).toHaveLength(11);
  });

  test("that fails ends the call with an error, and the server goes on", async () => {
    const failing: EventStore = {
      append: () => Promise.reject(new Error("the disk is full")),
      after: () => undefined,
      forget: () => Promise.reject(new Error("the disk is full")),
    };
    await using broken = await listen({ events: failing });
    using wire = await connectLegacy(broken.port, "2025-11-25");
    const { reply } = wire.open(legacyCall(5, "burst", { count: 2 }, progressToken));
    await reply.until("it was over", ({ isComplete, isClosed }) => isComplete || isClosed);
    broken.registry.register("sprout", {}, () => "grown");
    expect((await wire.ask(legacyCall(6, "sprout"))).result).toBeDefined();
    await wire.delete();
    expect(broken.warnings.length).toBeGreaterThan(0);
  });
});
