import { expect, test } from "vitest";
import { createVirtualClock } from "../testing/virtual-clock.ts";
import { type Start, StartSlots } from "./starts.ts";

/** Takes slots by name, and records in which order they were given. */
function createStarts(
  maxStarts: number,
  options: { readonly maxHoldMs?: number; readonly lookMs?: number } = {},
) {
  const clock = createVirtualClock();
  const slots = new StartSlots({ clock, maxStarts: () => maxStarts, ...options });
  const begun: string[] = [];
  const releases = new Map<string, () => void>();
  const start = (name: string, own: Partial<Start> = {}): Promise<void> => {
    const { signal } = new AbortController();
    const busy = { isUrgent: () => false, processorMs: () => clock.now(), signal };
    return slots.take({ ...busy, ...own }).then((release) => {
      begun.push(name);
      releases.set(name, release);
    });
  };
  return { clock, slots, begun, releases, start };
}

/** Lets promises that are settled call back. */
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test("no more starts than allowed are underway at once, in the order they came", async () => {
  const { begun, releases, start, slots } = createStarts(2);
  for (const name of ["a", "b", "c", "d"]) void start(name);
  await settle();
  expect(begun).toEqual(["a", "b"]);
  expect(slots.waiting).toBe(2);
  releases.get("b")?.();
  releases.get("b")?.();
  await settle();
  expect(begun).toEqual(["a", "b", "c"]);
  releases.get("a")?.();
  await settle();
  expect(begun).toEqual(["a", "b", "c", "d"]);
});

test("a gentle beginning lets one server start at a time, and after a second as many as allowed", async () => {
  const { clock, begun, releases, start, slots } = createStarts(2);
  slots.startGently();
  for (const name of ["a", "b", "c", "d"]) void start(name);
  await settle();
  expect(begun).toEqual(["a"]);
  expect(slots.isFull).toBe(true);
  releases.get("a")?.();
  await settle();
  expect(begun).toEqual(["a", "b"]);
  await clock.advance(1000);
  expect(begun).toEqual(["a", "b", "c"]);
});

test("a start that a call waits for comes first", async () => {
  const { begun, releases, start } = createStarts(1);
  let isUrgent = false;
  void start("a");
  void start("b");
  void start("c", { isUrgent: () => isUrgent });
  isUrgent = true;
  await settle();
  releases.get("a")?.();
  await settle();
  expect(begun).toEqual(["a", "c"]);
});

test("a start that takes very long lets the others begin", async () => {
  const { begun, clock, start, releases } = createStarts(1, { maxHoldMs: 3000, lookMs: 1000 });
  void start("long");
  void start("b");
  void start("c");
  await settle();
  await clock.advance(2999);
  expect(begun).toEqual(["long"]);
  await clock.advance(1);
  expect(begun).toEqual(["long", "b"]);
  releases.get("long")?.();
  await settle();
  expect(begun).toEqual(["long", "b"]);
});

test("a start that is given up while it waits takes no slot", async () => {
  const { begun, releases, start, slots } = createStarts(1);
  const giving = new AbortController();
  void start("a");
  const left = start("b", { signal: giving.signal });
  void start("c");
  giving.abort(new Error("not needed any more"));
  await expect(left).rejects.toThrow("not needed any more");
  expect(slots.waiting).toBe(1);
  releases.get("a")?.();
  await settle();
  expect(begun).toEqual(["a", "c"]);
});

test("a start that waits for something lets the others begin, and one that is busy does not", async () => {
  const { begun, clock, start } = createStarts(2, { lookMs: 1000 });
  let usedMs = 500;
  void start("mute", { processorMs: () => usedMs });
  void start("busy");
  void start("c");
  await clock.advance(1000);
  expect(begun).toEqual(["mute", "busy"]);
  usedMs += 50;
  await clock.advance(1000);
  expect(begun).toEqual(["mute", "busy", "c"]);
});
