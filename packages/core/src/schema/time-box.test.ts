import { expect, test } from "vitest";
import { ExhaustedError, withinTime } from "./time-box.ts";

test("code that never ends is stopped", () => {
  let runs = 0;
  const run = (): void => {
    runs++;
    for (;;);
  };
  expect(() => withinTime(50, run)).toThrow(ExhaustedError);
  expect(runs).toBeLessThanOrEqual(5);
});

test("code that did not get the processor in its time is run again", () => {
  const cell = new Int32Array(new SharedArrayBuffer(4));
  let runs = 0;
  const run = (): number => {
    runs++;
    // Takes no processor time, like a process that has to wait for others.
    if (runs < 3) Atomics.wait(cell, 0, 0, 60_000);
    return runs;
  };
  expect(withinTime(50, run)).toBe(3);
});

test("code that waits forever is given up", () => {
  const cell = new Int32Array(new SharedArrayBuffer(4));
  expect(() => withinTime(20, () => Atomics.wait(cell, 0, 0))).toThrow(ExhaustedError);
});
