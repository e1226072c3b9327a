import { expect, test } from "vitest";
import { createVirtualClock } from "../../../junctor/src/testing/virtual-clock.ts";
import { Unread, type UnreadAnswer } from "./reply.ts";

interface Reader extends UnreadAnswer {
  bytes: number;
  isCut: boolean;
}

function readerOf(owner: string, bytes: number): Reader {
  const reader: Reader = {
    owner,
    bytes,
    isCut: false,
    waiting: () => reader.bytes,
    cut: () => {
      reader.isCut = true;
    },
  };
  return reader;
}

const isCut = (readers: readonly Reader[]): readonly boolean[] => readers.map((reader) => reader.isCut);

test("beyond the budget the readers of the greediest owner are cut, those that wait longest first", () => {
  const unread = new Unread({ maxBytes: 100, maxBytesEach: () => 1000, clock: createVirtualClock() });
  const readers = ["modest", "greedy", "greedy", "greedy", "modest"].map((owner) => readerOf(owner, 25));
  for (const reader of readers) unread.note(reader);
  expect(isCut(readers)).toEqual([false, true, false, false, false]);
  expect(unread.bytes).toBe(100);
});

test("what was taken meanwhile no longer counts", () => {
  const unread = new Unread({ maxBytes: 100, maxBytesEach: () => 1000, clock: createVirtualClock() });
  const [early, late] = [readerOf("a", 90), readerOf("a", 90)];
  unread.note(early);
  early.bytes = 5;
  unread.note(late);
  expect([isCut([early, late]), unread.bytes]).toEqual([[false, false], 95]);
  unread.delete(late);
  unread.delete(early);
  expect(unread.bytes).toBe(0);
});

test("an owner with more than its share loses the readers that are behind, and keeps those that just began", async () => {
  const clock = createVirtualClock();
  const unread = new Unread({ maxBytes: 1000, maxBytesEach: () => 100, clock });
  const [behind, fresh] = [readerOf("a", 80), readerOf("a", 80)];
  unread.note(behind);
  unread.note(fresh);
  expect(isCut([behind, fresh])).toEqual([false, false]);
  await clock.advance(1500);
  const third = readerOf("a", 80);
  unread.note(third);
  await clock.advance(1000);
  unread.note(third);
  expect(isCut([behind, fresh, third])).toEqual([true, true, false]);
});

test("10,000 readers that stall leave the budget, and no more, unread", () => {
  const unread = new Unread({ maxBytes: 1000, maxBytesEach: () => 800, clock: createVirtualClock() });
  const readers = Array.from({ length: 10_000 }, (_, index) => readerOf(`caller ${index % 3}`, 10));
  for (const reader of readers) {
    unread.note(reader);
    expect(unread.bytes).toBeLessThanOrEqual(1000);
  }
  expect(readers.filter((reader) => !reader.isCut)).toHaveLength(100);
});
