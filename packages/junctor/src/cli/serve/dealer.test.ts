import { expect, test } from "vitest";
import { createVirtualClock, type VirtualClock } from "../../testing/virtual-clock.ts";
import { Dealer } from "./workers.ts";

/** Workers by name, and which of them were given connections, in order. */
interface Table {
  readonly clock: VirtualClock;
  readonly given: string[];
  /** Deals connections to a worker. */
  deal(name: string, times?: number): void;
  taken(name: string): void;
  leave(name: string): void;
}

function setTable(): Table {
  const clock = createVirtualClock();
  const dealer = new Dealer(clock);
  const workers = new Map<string, object>();
  const workerOf = (name: string): object => {
    const worker = workers.get(name) ?? {};
    workers.set(name, worker);
    return worker;
  };
  const given: string[] = [];
  return {
    clock,
    given,
    deal: (name, times = 1) => {
      for (let count = 0; count < times; count++) dealer.deal(workerOf(name), () => void given.push(name));
    },
    taken: (name) => dealer.taken(workerOf(name)),
    leave: (name) => dealer.leave(workerOf(name)),
  };
}

test("connections in turn are given at once", () => {
  const { deal, given, clock } = setTable();
  for (const name of ["a", "b", "c", "a", "b", "c"]) deal(name);
  expect(given).toEqual(["a", "b", "c", "a", "b", "c"]);
  expect(clock.sleeping).toBe(0);
});

test("a worker that is quicker waits when it is two ahead, and goes on when the other has caught up", () => {
  const { deal, given, clock } = setTable();
  deal("quick");
  deal("slow");
  deal("quick", 3);
  expect(given.join(" ")).toBe("quick slow quick quick");
  deal("slow");
  expect(given.join(" ")).toBe("quick slow quick quick slow quick");
  expect(clock.sleeping).toBe(0);
});

test("a worker that took its connection, and has no other to take, is not waited for", () => {
  const { deal, taken, given, clock } = setTable();
  deal("quick");
  deal("slow");
  deal("quick", 3);
  expect(given).toHaveLength(4);
  taken("slow");
  expect(given).toHaveLength(5);
  expect(clock.sleeping).toBe(0);
});

test("a worker that is stopped is waited for once, until it takes a connection", async () => {
  const { deal, given, clock } = setTable();
  deal("live");
  deal("stopped");
  deal("live", 3);
  expect(given).toHaveLength(4);
  await clock.advance(99);
  expect(given).toHaveLength(4);
  await clock.advance(1);
  expect(given).toHaveLength(5);
  deal("live", 10);
  expect(given).toHaveLength(15);
  // It does not get the ten that it missed.
  deal("stopped");
  deal("live", 9);
  expect(given.slice(15)).toEqual(["stopped", "live"]);
});

test("a worker that is gone is not waited for, and is given nothing", () => {
  const { deal, leave, given, clock } = setTable();
  deal("a");
  deal("b");
  deal("a", 3);
  leave("b");
  expect(given).toEqual(["a", "b", "a", "a", "a"]);
  deal("c");
  deal("a", 3);
  expect(given.slice(5)).toEqual(["c", "a"]);
  leave("a");
  leave("c");
  expect(given).toHaveLength(7);
  expect(clock.sleeping).toBe(0);
});
