import { expect, test } from "vitest";
import { BoundedQueue } from "./queue.ts";

async function collect<T>(queue: BoundedQueue<T>): Promise<readonly T[]> {
  const items: T[] = [];
  for await (const item of queue) items.push(item);
  return items;
}

async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  const turn = new Promise<boolean>((resolve) => setImmediate(() => resolve(false)));
  return Promise.race([promise.then(() => true), turn]);
}

test("a queue gives its items in their order, those that came before and those that come later", async () => {
  const queue = new BoundedQueue<number>(10);
  await queue.push(1);
  const collected = collect(queue);
  await queue.push(2);
  queue.close();
  await expect(collected).resolves.toEqual([1, 2]);
});

test("pushing to a full queue waits until an item was taken", async () => {
  const queue = new BoundedQueue<number>(2);
  await queue.push(1);
  const pushed = queue.push(2);
  await expect(isSettled(pushed)).resolves.toBe(false);
  const iterator = queue[Symbol.asyncIterator]();
  await iterator.next();
  await expect(isSettled(pushed)).resolves.toBe(true);
});

test("a producer that does not wait is refused at twice the limit", () => {
  const queue = new BoundedQueue<number>(2);
  for (let item = 0; item < 4; item++) void queue.push(item);
  expect(() => queue.push(4)).toThrow(RangeError);
});

test("closing ends the iteration, lets waiting producers go, and drops what is pushed later", async () => {
  const queue = new BoundedQueue<number>(1);
  const pushed = queue.push(1);
  queue.close();
  await pushed;
  await queue.push(2);
  await expect(collect(queue)).resolves.toEqual([1]);
  expect(queue.isClosed).toBe(true);
});
