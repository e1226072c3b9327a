import fc from "fast-check";
import { expect, test } from "vitest";
import { runs } from "../../../../test/support/runs.ts";
import { describeStore } from "../../../../test/support/store-suite.ts";
import { createVirtualClock } from "../testing/virtual-clock.ts";
import { createMemoryClusterStore } from "./memory-store.ts";

describeStore("memory", async () => {
  const clock = createVirtualClock();
  const store = createMemoryClusterStore({ clock });
  return { a: store, b: store, pass: clock.advance, [Symbol.asyncDispose]: store[Symbol.asyncDispose] };
});

test("a store that is full refuses new facts, and takes some again when others have expired", async () => {
  const clock = createVirtualClock();
  await using store = createMemoryClusterStore({ clock, maxKeys: 10 });
  for (let number = 0; number < 10; number++) await store.write(`key ${number}`, "v", 100 + number);
  await expect(store.write("one more", "v", 100)).rejects.toMatchObject({ code: "store.full" });
  await expect(store.claim("one more", "A", 100)).rejects.toMatchObject({ code: "store.full" });
  await store.write("key 3", "changed", 1000);
  await clock.advance(101);
  await store.write("one more", "v", 100);
  expect(await store.read("key 3")).toBe("changed");
});

test("a limit gives at most its burst, and what came back in the time, whatever is asked for", async () => {
  const step = fc.record({
    passMs: fc.integer({ min: 0, max: 400 }),
    count: fc.integer({ min: 1, max: 12 }),
  });
  await fc.assert(
    fc.asyncProperty(
      fc.double({ min: 0.05, max: 300, noNaN: true }),
      fc.integer({ min: 1, max: 50 }),
      fc.array(step, { minLength: 1, maxLength: 60 }),
      async (everyMs, burst, steps) => {
        const clock = createVirtualClock(1000);
        await using store = createMemoryClusterStore({ clock });
        let given = 0;
        for (const { passMs, count } of steps) {
          await clock.advance(passMs);
          const taken = await store.take({ key: "l", everyMs, burst }, count);
          given += taken.count;
          const passed = clock.now() - 1000;
          expect(given).toBeLessThanOrEqual(burst + passed / everyMs + 1e-3);
          if (taken.count === 0) {
            await clock.advance(taken.waitMs);
            const next = await store.take({ key: "l", everyMs, burst }, 1);
            expect(next.count).toBe(1);
            given += 1;
          }
        }
      },
    ),
    { numRuns: runs(200) },
  );
});
