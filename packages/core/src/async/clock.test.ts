import { afterEach, expect, test, vi } from "vitest";
import { createVirtualClock } from "../../../junctor/src/testing/virtual-clock.ts";
import { awakeTimer, dateOf, systemClock, timedOut, waitFor } from "./clock.ts";

afterEach(() => void vi.useRealTimers());

const never = (): Promise<never> => new Promise(() => {});

test("a wait settles as the promise does, and leaves no timer behind", async () => {
  const clock = createVirtualClock();
  await expect(waitFor(Promise.resolve(7), { ms: 10, clock })).resolves.toBe(7);
  await expect(waitFor(Promise.reject(new Error("no")), { ms: 10, clock })).rejects.toThrow("no");
  expect(clock.sleeping).toBe(0);
});

test("a wait whose time is over says so, and leaves no timer behind", async () => {
  const clock = createVirtualClock();
  const waited = waitFor(never(), { ms: 10, clock });
  await clock.advance(10);
  await expect(waited).resolves.toBe(timedOut);
  expect(clock.sleeping).toBe(0);
});

test("a signal ends a wait with its reason, before it begins too", async () => {
  const clock = createVirtualClock();
  const controller = new AbortController();
  const waited = waitFor(never(), { signal: controller.signal, ms: 10, clock });
  controller.abort(new Error("enough"));
  await expect(waited).rejects.toThrow("enough");
  const dropped = Promise.reject(new Error("not handled"));
  await expect(waitFor(dropped, controller)).rejects.toThrow("enough");
  expect(clock.sleeping).toBe(0);
});

test("a wall clock that is set changes dates, and nothing that is measured", () => {
  const before = systemClock.now();
  vi.useFakeTimers({ toFake: ["Date"], now: before - 3_600_000 });
  const after = systemClock.now();
  expect(after).toBeGreaterThanOrEqual(before);
  expect(after - before).toBeLessThan(600_000);
  expect(dateOf(after, { ...systemClock, now: () => after + 1000 })).toBe(
    new Date(before - 3_600_000 - 1000).toISOString(),
  );
});

test("time in which the process was stopped is not time awake", async () => {
  const clock = createVirtualClock();
  let stoppedMs = 0;
  const fired: number[] = [];
  awakeTimer({ ...clock, now: () => clock.now() + stoppedMs }, 2000, () => fired.push(clock.now()));
  await clock.advance(400);
  stoppedMs = 3000;
  await clock.advance(1849);
  expect(fired).toEqual([]);
  await clock.advance(1);
  expect(fired).toEqual([2250]);
  expect(clock.sleeping).toBe(0);
});

test("a process that is never awake in time waits five times as long, and no longer", async () => {
  const clock = createVirtualClock();
  let lateMs = 0;
  const late = { ...clock, timer: (ms: number, callback: () => void) => clock.timer(ms + lateMs, callback) };
  let hasFired = false;
  lateMs = 250;
  awakeTimer(late, 2000, () => (hasFired = true));
  await clock.advance(9999);
  expect(hasFired).toBe(false);
  await clock.advance(1);
  expect(hasFired).toBe(true);
});
