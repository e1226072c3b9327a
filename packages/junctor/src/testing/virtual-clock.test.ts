import { expect, test } from "vitest";
import { sleep } from "../../../core/src/async/clock.ts";
import { createVirtualClock } from "./virtual-clock.ts";

test("a sleep ends when its time has come, and not before", async () => {
  const clock = createVirtualClock(1000);
  const woken: number[] = [];
  void sleep(50, clock).then(() => woken.push(clock.now()));
  await clock.advance(49);
  expect(woken).toEqual([]);
  await clock.advance(1);
  expect(woken).toEqual([1050]);
});

test("sleeps end in the order of their time, and what they wake may sleep again", async () => {
  const clock = createVirtualClock();
  const woken: string[] = [];
  void sleep(20, clock).then(() => woken.push("late"));
  void sleep(5, clock)
    .then(() => sleep(5, clock))
    .then(() => woken.push("early, twice"));
  await clock.advance(100);
  expect(woken).toEqual(["early, twice", "late"]);
  expect(clock.now()).toBe(100);
});

test("aborting ends a sleep with the signal's reason and leaves nothing behind", async () => {
  const clock = createVirtualClock();
  const controller = new AbortController();
  const slept = sleep(10, clock, controller.signal);
  controller.abort(new Error("enough"));
  await expect(slept).rejects.toThrow("enough");
  expect(clock.sleeping).toBe(0);
});
