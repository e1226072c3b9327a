import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { runs } from "../../../../test/support/runs.ts";
import { createMemoryEventStore, type EventStore } from "./event-store.ts";
import type { FrameSink } from "./reply.ts";
import { ResumableStream } from "./session-table.ts";

/** A client's side of a connection that keeps what was written to it. */
interface Reader extends FrameSink {
  readonly frames: string[];
  readonly state: { isOpen: boolean; ended?: "end" | "cut" };
}

function createReader(): Reader {
  const frames: string[] = [];
  const state: Reader["state"] = { isOpen: true };
  const close = (how: "end" | "cut"): void => {
    if (!state.isOpen) return;
    state.isOpen = false;
    state.ended = how;
  };
  return {
    frames,
    state,
    get isOpen() {
      return state.isOpen;
    },
    write: async (text) => {
      await Promise.resolve();
      if (state.isOpen) frames.push(text);
    },
    end: () => close("end"),
    cut: () => close("cut"),
  };
}

function dataOf({ frames }: Reader): readonly string[] {
  return frames.flatMap((frame) => /^data: (.+)$/m.exec(frame)?.[1] ?? []);
}

function lastIdOf(readers: readonly Reader[]): string {
  const ids = readers
    .flatMap(({ frames }) => frames)
    .flatMap((frame) => /^id: (.+)$/m.exec(frame)?.[1] ?? []);
  return ids.at(-1)!;
}

describe("a stream that outlives its connection", () => {
  test("says whether somebody is connected from the moment it is opened", () => {
    const stream = new ResumableStream("s", createMemoryEventStore(), 0);
    expect(stream.isConnected).toBe(false);
    void stream.open(createReader(), undefined);
    expect(stream.isConnected).toBe(true);
  });

  test("primes a client that may be sent away, and no other", async () => {
    const [primed, plain] = [createReader(), createReader()];
    await new ResumableStream("s", createMemoryEventStore(), 0).open(primed, 1500);
    await new ResumableStream("t", createMemoryEventStore(), 0).open(plain, undefined);
    expect(primed.frames).toEqual(["id: s:0\nretry: 1500\ndata: \n\n"]);
    expect(plain.frames).toEqual([]);
  });

  test("ends a connection that resumes after everything was said", async () => {
    const stream = new ResumableStream("s", createMemoryEventStore(), 0);
    await stream.open(createReader(), undefined);
    await stream.send("a", 0);
    await stream.close("ended");
    const again = createReader();
    await stream.resume(again, "s:0", 1);
    expect(again.state).toEqual({ isOpen: false, ended: "end" });
    expect(stream.usedAt).toBe(1);
  });

  test("sends nothing after its end", async () => {
    const store = createMemoryEventStore();
    const stream = new ResumableStream("s", store, 0);
    const reader = createReader();
    await stream.open(reader, undefined);
    await stream.close("ended");
    await stream.send("late", 0);
    expect(reader.frames).toEqual([]);
  });

  test("cuts a connection that resumes from what was lost meanwhile, rather than leave it hanging", async () => {
    const store = createMemoryEventStore();
    const stream = new ResumableStream("s", store, 0);
    await stream.open(createReader(), undefined);
    await stream.send("a", 0);
    await store.forget("s");
    const again = createReader();
    await stream.resume(again, "s:0", 0);
    expect(again.state.ended).toBe("cut");
  });

  test("cuts the older of two connections", async () => {
    const stream = new ResumableStream("s", createMemoryEventStore(), 0);
    const [older, newer] = [createReader(), createReader()];
    await stream.open(older, undefined);
    await stream.send("a", 0);
    await stream.resume(newer, "s:0", 0);
    await stream.send("b", 0);
    expect([older.state.ended, dataOf(older), dataOf(newer)]).toEqual(["cut", ["a"], ["b"]]);
  });

  test("cuts a reader that takes nothing when more than a mebibyte waits for it, and not for one large event", async () => {
    const stream = new ResumableStream("s", createMemoryEventStore(), 0);
    const stuck = createReader();
    let free = (): void => {};
    const taken = new Promise<void>((resolve) => (free = resolve));
    const reader = { ...stuck, write: () => taken, cut: (reason: string) => (free(), stuck.cut(reason)) };
    await stream.open(reader, undefined);
    const sends = [stream.send("x".repeat(3 * 1024 * 1024), 0)];
    await Promise.resolve();
    expect(stuck.isOpen).toBe(true);
    for (let index = 0; index < 20; index++) sends.push(stream.send("x".repeat(60_000), 0));
    expect(stuck.isOpen).toBe(false);
    for (const sent of sends) await sent;
  });

  test("a store that failed once does not stop it", async () => {
    const store = createMemoryEventStore();
    let isFailing = false;
    const flaky: EventStore = {
      ...store,
      append: (stream, data) =>
        isFailing ? Promise.reject(new Error("the disk is full")) : store.append(stream, data),
    };
    const stream = new ResumableStream("s", flaky, 0);
    const reader = createReader();
    await stream.open(reader, undefined);
    isFailing = true;
    await expect(stream.send("a", 0)).rejects.toThrow("the disk is full");
    isFailing = false;
    await stream.send("b", 0);
    expect(dataOf(reader)).toEqual(["b"]);
  });

  test("in whatever order sends, losses and resumptions come, nothing is lost and nothing comes twice", async () => {
    const act = fc.constantFrom("send", "lose", "resume", "release");
    await fc.assert(
      fc.asyncProperty(
        fc.scheduler(),
        fc.array(act, { minLength: 1, maxLength: 20 }),
        async (scheduler, acts) => {
          const store = createMemoryEventStore();
          // The store answers whenever the scheduler likes.
          const scheduled: EventStore = {
            append: (stream, data) =>
              scheduler.schedule(Promise.resolve()).then(() => store.append(stream, data)),
            after: (id) => scheduler.schedule(Promise.resolve()).then(() => store.after(id)),
            forget: (stream) => store.forget(stream),
          };
          const stream = new ResumableStream("s", scheduled, 0);
          const readers = [createReader()];
          const pending: unknown[] = [stream.open(readers[0]!, 1000)];
          await scheduler.waitIdle();
          let sent = 0;
          for (const what of acts) {
            const reader = readers.at(-1)!;
            if (what === "send") pending.push(stream.send(`${sent++}`, 0));
            if (what === "lose") reader.cut("lost");
            if (what === "release") pending.push(stream.close("released"));
            if (what === "resume") {
              // A client comes back with the last event it saw when its connection was lost.
              reader.cut("lost");
              const lastId = lastIdOf(readers);
              readers.push(createReader());
              pending.push(stream.resume(readers.at(-1)!, lastId, 0));
            }
          }
          pending.push(stream.close("ended"));
          await scheduler.waitIdle();
          await Promise.all(pending);
          const lastId = lastIdOf(readers);
          readers.push(createReader());
          const last = stream.resume(readers.at(-1)!, lastId, 0);
          await scheduler.waitIdle();
          await last;
          expect(readers.flatMap(dataOf)).toEqual(Array.from({ length: sent }, (_, index) => `${index}`));
        },
      ),
      { numRuns: runs(300) },
    );
  });
});
