import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ToolError } from "../../../core/src/errors/index.ts";
import { createCallContext } from "../../../core/src/provider/context.ts";
import { createOperation } from "../../../core/src/provider/operation.ts";
import { createVirtualClock } from "../../../junctor/src/testing/virtual-clock.ts";
import { limitRate, type LimitRateOptions } from "./limits.ts";

interface Limited {
  /** What a call is told, or undefined when it may go on. */
  readonly call: (name?: string, caller?: string) => string | undefined;
  readonly wait: (ms: number) => void;
}

function limited(options: LimitRateOptions): Limited {
  let now = 1_000_000;
  const clock = { ...createVirtualClock(), now: () => now };
  const middleware = limitRate({ ...options, clock });
  return {
    call: (name = "t", caller) => {
      try {
        void middleware.beforeCall?.(createOperation("tools/call", name), createCallContext({ caller }));
        return undefined;
      } catch (error) {
        expect(error).toBeInstanceOf(ToolError);
        return (error as ToolError).message;
      }
    },
    wait: (ms) => {
      now += ms;
    },
  };
}

function countOf(limit: Limited, calls: number, caller?: string): number {
  return Array.from({ length: calls }, () => limit.call("t", caller)).filter((told) => told === undefined)
    .length;
}

describe("limitRate", () => {
  test("lets a burst pass, then as many as the rate allows", () => {
    const limit = limited({ callsPerMinute: 60, burst: 3 });
    expect(countOf(limit, 10)).toBe(3);
    limit.wait(2000);
    expect(countOf(limit, 10)).toBe(2);
    limit.wait(60 * 60_000);
    expect(countOf(limit, 10)).toBe(3);
  });

  test("lets a minute's worth pass at once when no burst is given, and one call at least", () => {
    expect(countOf(limited({ callsPerMinute: 30 }), 100)).toBe(30);
    expect(countOf(limited({ callsPerMinute: 0.5 }), 100)).toBe(1);
  });

  test("says the limit, and when to try again", () => {
    const limit = limited({
      callsPerMinute: 6,
      burst: 1,
      tools: { "search_*": { callsPerMinute: 2, burst: 1 } },
    });
    limit.call("search_web");
    expect(limit.call()).toBe("No more than 6 calls a minute are allowed. Try again in 10 s.");
    limit.wait(10_000);
    expect(limit.call("search_web")).toBe(
      "No more than 2 calls a minute of search_* are allowed. Try again in 20 s.",
    );
  });

  test("counts each caller by itself, and those without a name together", () => {
    const limit = limited({ callsPerMinute: 2 });
    expect([countOf(limit, 5, "ada"), countOf(limit, 5, "bob"), countOf(limit, 5)]).toEqual([2, 2, 2]);
    expect(countOf(limit, 5)).toBe(0);
  });

  test("does not count what it refuses, under any of its limits", () => {
    const limit = limited({ callsPerMinute: 10, tools: { rare: { callsPerMinute: 1 } } });
    for (let i = 0; i < 50; i++) limit.call("rare");
    expect(countOf(limit, 20)).toBe(9);
  });

  test("takes nothing away when the clock is set back", () => {
    const limit = limited({ callsPerMinute: 60, burst: 2 });
    limit.call();
    limit.wait(-100_000);
    expect(limit.call()).toBeUndefined();
    expect(limit.call()).toContain("Try again in 1 s");
  });

  test("lets a call pass after as long as it said", () => {
    const rates = fc.record({
      callsPerMinute: fc.integer({ min: 1, max: 1000 }),
      burst: fc.integer({ min: 1, max: 5 }),
    });
    fc.assert(
      fc.property(rates, fc.array(fc.integer({ min: 0, max: 5000 }), { maxLength: 20 }), (rate, waits) => {
        const limit = limited(rate);
        for (const ms of waits) {
          limit.wait(ms);
          const told = limit.call();
          if (told === undefined) continue;
          limit.wait(1000 * Number(/in (\d+) s/.exec(told)?.[1]));
          expect(limit.call()).toBeUndefined();
        }
      }),
    );
  });

  test("forgets who was not seen for longest beyond ten thousand callers", () => {
    const limit = limited({ callsPerMinute: 1 });
    for (const caller of ["first", "second"]) limit.call("t", caller);
    for (let i = 0; i < 9_998; i++) limit.call("t", `caller ${i}`);
    expect(limit.call("t", "first")).toContain("Try again");
    limit.call("t", "one more");
    expect(limit.call("t", "first")).toContain("Try again");
    expect(limit.call("t", "second")).toBeUndefined();
  });

  test.each([
    [{ callsPerMinute: 0 }, "callsPerMinute must be above 0, not 0"],
    [{ callsPerMinute: Number.NaN }, "callsPerMinute"],
    [{ callsPerMinute: 1, burst: 0 }, "burst must be 1 or more, not 0"],
    [{ callsPerMinute: 1, tools: { a: { callsPerMinute: -1 } } }, "callsPerMinute"],
  ])("refuses %j", (options, message) => {
    expect(() => limitRate(options)).toThrow(message);
  });
});
