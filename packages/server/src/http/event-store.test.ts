import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { costOf } from "../../../../test/support/growth.ts";
import { createMemoryEventStore, type EventStore, streamOf } from "./event-store.ts";

function append(store: EventStore, stream: string, ...data: readonly string[]): readonly string[] {
  return data.map((text) => store.append(stream, text) as string);
}

function after(store: EventStore, eventId: string): readonly string[] | undefined {
  const events = store.after(eventId) as ReturnType<EventStore["after"]> &
    readonly { readonly data: string }[];
  return events?.map(({ data }) => data);
}

describe("the events of a stream", () => {
  test("are given in order after any of them", () => {
    const store = createMemoryEventStore();
    const ids = append(store, "s", "a", "b", "c");
    expect(ids.map((id) => after(store, id))).toEqual([["b", "c"], ["c"], []]);
  });

  test("are kept apart from those of another", () => {
    const store = createMemoryEventStore();
    const [first] = append(store, "s", "a");
    append(store, "t", "x");
    append(store, "s", "b");
    expect(after(store, first!)).toEqual(["b"]);
  });

  test("have ids that are unique across streams and name their own", () => {
    const store = createMemoryEventStore();
    const ids = ["s", "t", "s:t"].flatMap((stream) => append(store, stream, "a", "b"));
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids.map(streamOf)).toEqual(["s", "s", "t", "t", "s:t", "s:t"]);
  });

  test.each([
    "",
    "s",
    "s:",
    ":0",
    "s:2",
    "s:-1",
    "s:1.0",
    "s:1e0",
    "s:0x1",
    "s: 1",
    "s:1 ",
    "t:0",
    "s:9".repeat(40),
  ])("are not given after %j, which is not an event", (id) => {
    const store = createMemoryEventStore();
    append(store, "s", "a", "b");
    expect(after(store, id)).toBeUndefined();
  });

  test("are gone when the stream is forgotten", () => {
    const store = createMemoryEventStore();
    const [first] = append(store, "s", "a", "b");
    void store.forget("s");
    expect(after(store, first!)).toBeUndefined();
  });
});

describe("at its limit", () => {
  test("a stream drops its oldest events, and says that they are gone", () => {
    const store = createMemoryEventStore({ maxStreamBytes: 40 });
    const ids = append(store, "s", ...Array.from({ length: 10 }, (_, index) => `event ${index}!`));
    expect(after(store, ids[0]!)).toBeUndefined();
    expect(after(store, ids[8]!)).toEqual(["event 9!"]);
  });

  test("an event larger than the limit is kept alone, so that the stream can go on", () => {
    const store = createMemoryEventStore({ maxStreamBytes: 10 });
    const [first] = append(store, "s", "a");
    append(store, "s", "x".repeat(100));
    expect(after(store, first!)).toEqual(["x".repeat(100)]);
  });

  test("the stream that was written to longest ago goes first", () => {
    const store = createMemoryEventStore({ maxTotalBytes: 70 });
    const [old] = append(store, "old", "a", "b");
    const [used] = append(store, "used", "a", "b");
    append(store, "old", "c");
    append(store, "new", "x".repeat(40));
    expect(after(store, used!)).toBeUndefined();
    expect(after(store, old!)).toEqual(["b", "c"]);
  });

  test("the events of the owner with most go first, and so do its streams", () => {
    const store = createMemoryEventStore({ maxTotalBytes: 2000, maxStreams: 20 });
    const write = (stream: string, owner: string): string =>
      store.append(stream, "x".repeat(50), owner) as string;
    const kept = ["m1", "m2"].map((stream) => {
      const first = write(stream, "modest");
      write(stream, "modest");
      return first;
    });
    const early = write("g0", "greedy");
    for (let stream = 0; stream < 1000; stream++)
      for (let event = 0; event < 3; event++) write(`g${stream}`, "greedy");
    expect(kept.map((id) => after(store, id)?.length)).toEqual([1, 1]);
    expect(after(store, early)).toBeUndefined();
  });

  test("a stream that lost its events gives no id twice, and never passes over what it lost", () => {
    const store = createMemoryEventStore({ maxTotalBytes: 50 });
    const early = append(store, "s", "a", "b", "c");
    append(store, "other", "x".repeat(60));
    const late = append(store, "s", "d", "e", "f", "g");
    expect(new Set([...early, ...late]).size).toBe(7);
    expect(after(store, early[1]!)).toBeUndefined();
    expect(after(store, late[0]!)).toEqual(["e", "f", "g"]);
  });

  test("a stream that lost its events can go on after its last", () => {
    const store = createMemoryEventStore({ maxTotalBytes: 50 });
    const early = append(store, "s", "a", "b");
    append(store, "other", "x".repeat(60));
    expect(early.map((id) => after(store, id))).toEqual([undefined, []]);
  });

  test("the stream that was written to longest ago is not known any more when there are too many", () => {
    const store = createMemoryEventStore({ maxStreams: 2 });
    const ids = ["a", "b", "c"].flatMap((stream) => append(store, stream, "1", "2"));
    expect(ids.map((id) => after(store, id))).toEqual([undefined, undefined, ["2"], [], ["2"], []]);
  });

  test("a stream that was dropped gives no id twice, and never passes over what it lost", () => {
    const store = createMemoryEventStore({ maxStreams: 1 });
    const early = append(store, "s", "a", "b", "c");
    append(store, "other", "x");
    const late = append(store, "s", "d", "e");
    expect(new Set([...early, ...late]).size).toBe(5);
    expect(after(store, early[0]!)).toBeUndefined();
    expect(after(store, late[0]!)).toEqual(["e"]);
  });

  test("an append costs the same, however many streams were emptied and events dropped", () => {
    const store = createMemoryEventStore({ maxTotalBytes: 4_000_000, maxStreams: 60_000 });
    let streams = 0;
    const write = (): void => {
      for (let index = 0; index < 20_000; index++) append(store, `stream ${streams++}`, "x".repeat(100));
    };
    const costs = Array.from({ length: 9 }, () => costOf(write));
    // The least of a few, because the collector comes by when it likes.
    expect(Math.min(...costs.slice(-3))).toBeLessThan(5 * Math.min(...costs.slice(0, 3)));
  });

  test("forgetting streams in any order leaves the others as they are", () => {
    const store = createMemoryEventStore({ maxTotalBytes: 30, maxStreams: 3 });
    const [a, b, c] = ["a", "b", "c"].map((stream) => append(store, stream, "1234", "5")[0]!);
    for (const stream of ["b", "a", "nobody"]) void store.forget(stream);
    append(store, "d", "12345678");
    append(store, "c", "9");
    expect([a, b, c].map((id) => after(store, id!))).toEqual([undefined, undefined, ["5", "9"]]);
    for (const stream of ["c", "d"]) void store.forget(stream);
    expect(after(store, append(store, "e", "1", "2")[0]!)).toEqual(["2"]);
  });

  test("whatever is written, what is given is exactly what followed, or nothing", () => {
    const writes = fc.array(fc.tuple(fc.constantFrom("a", "b", "c", "d"), fc.string({ maxLength: 30 })), {
      maxLength: 60,
    });
    fc.assert(
      fc.property(writes, fc.integer({ min: 20, max: 200 }), fc.integer({ min: 1, max: 3 }), (...given) => {
        const [written, limit, maxStreams] = given;
        const store = createMemoryEventStore({
          maxStreamBytes: limit,
          maxTotalBytes: 2 * limit,
          maxStreams,
        });
        const sent = written.map(([stream, data]) => ({ stream, data, id: append(store, stream, data)[0]! }));
        expect(new Set(sent.map(({ id }) => id)).size).toBe(sent.length);
        for (const [index, { stream, id }] of sent.entries()) {
          const followed = sent.slice(index + 1).filter((event) => event.stream === stream);
          const kept = after(store, id);
          if (kept !== undefined) expect(kept).toEqual(followed.map(({ data }) => data));
        }
      }),
    );
  });
});
