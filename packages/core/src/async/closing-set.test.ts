import { expect, test } from "vitest";
import { ClosingSet } from "./collections.ts";
import { createDeferred } from "./queue.ts";

function createThing(
  name: string,
  log: string[],
  closed: Promise<void> = Promise.resolve(),
): AsyncDisposable {
  return {
    [Symbol.asyncDispose]: () => {
      log.push(name);
      return closed;
    },
  };
}

test("disposing waits for what is being closed, also for what fails", async () => {
  const log: string[] = [];
  const slow = createDeferred<void>();
  const set = new ClosingSet();
  void set.close(createThing("slow", log, slow.promise));
  void set.close(createThing("broken", log, Promise.reject(new Error("cannot close"))));
  let isDisposed = false;
  const disposed = set[Symbol.asyncDispose]().then(() => (isDisposed = true));
  await new Promise(setImmediate);
  expect([isDisposed, log]).toEqual([false, ["slow", "broken"]]);
  slow.resolve();
  await disposed;
});

test("what is in use is closed once, when it is idle or when the set is disposed", async () => {
  const log: string[] = [];
  const idle = createDeferred<void>();
  const set = new ClosingSet();
  set.closeWhenIdle(createThing("idle", log), idle.promise);
  set.closeWhenIdle(createThing("busy", log), new Promise(() => {}));
  expect(log).toEqual([]);
  idle.resolve();
  await new Promise(setImmediate);
  expect(log).toEqual(["idle"]);
  await set[Symbol.asyncDispose]();
  await set[Symbol.asyncDispose]();
  expect(log).toEqual(["idle", "busy"]);
});
