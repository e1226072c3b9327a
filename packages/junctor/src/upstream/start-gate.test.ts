import * as fc from "fast-check";
import { expect, test } from "vitest";
import { createVirtualClock } from "../testing/virtual-clock.ts";
import { StartGate } from "./starts.ts";

test("six starts come at once, and the seventh when the first is a minute old", async () => {
  const clock = createVirtualClock(1_000_000);
  const gate = new StartGate({ clock });
  for (let start = 0; start < 6; start++) {
    expect(gate.delayMs).toBe(0);
    gate.note();
    await clock.advance(1000);
  }
  expect(gate.delayMs).toBe(54_000);
  await clock.advance(54_000);
  expect(gate.delayMs).toBe(0);
  gate.note();
  expect(gate.delayMs).toBe(1000);
});

test("a start that is old does not count", async () => {
  const clock = createVirtualClock(1_000_000);
  const gate = new StartGate({ clock, maxStarts: 2, windowMs: 100 });
  gate.note();
  await clock.advance(100);
  gate.note();
  expect(gate.delayMs).toBe(0);
  gate.note();
  expect(gate.delayMs).toBe(100);
});

test("starts that wait for the end of the delay are never more than the window allows", async () => {
  const limits = fc.record({
    maxStarts: fc.integer({ min: 1, max: 8 }),
    windowMs: fc.integer({ min: 1, max: 500 }),
  });
  await fc.assert(
    fc.asyncProperty(
      limits,
      fc.array(fc.nat(120), { maxLength: 60, size: "max" }),
      async ({ maxStarts, windowMs }, waits) => {
        const clock = createVirtualClock();
        const gate = new StartGate({ clock, maxStarts, windowMs });
        const starts: number[] = [];
        for (const wait of waits) {
          if (gate.delayMs === 0) {
            gate.note();
            starts.push(clock.now());
          }
          await clock.advance(wait);
        }
        for (const start of starts)
          expect(
            starts.filter((other) => other >= start && other < start + windowMs).length,
          ).toBeLessThanOrEqual(maxStarts);
      },
    ),
    { numRuns: 50 },
  );
});

test("a start may begin after the delay", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(100), { maxLength: 20, size: "max" }), async (waits) => {
      const clock = createVirtualClock();
      const gate = new StartGate({ clock, maxStarts: 3, windowMs: 150 });
      for (const wait of waits) {
        await clock.advance(gate.delayMs);
        expect(gate.delayMs).toBe(0);
        gate.note();
        await clock.advance(wait);
      }
    }),
    { numRuns: 50 },
  );
});
