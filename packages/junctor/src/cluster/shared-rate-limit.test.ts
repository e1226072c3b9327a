import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { withCounts } from "../../../../test/support/counting-store.ts";
import { runs } from "../../../../test/support/runs.ts";
import { createCallContext } from "../../../core/src/provider/context.ts";
import { createOperation } from "../../../core/src/provider/operation.ts";
import { createVirtualClock, type VirtualClock } from "../testing/virtual-clock.ts";
import { createMemoryClusterStore } from "./memory-store.ts";
import { createSharedRateLimit, type SharedRate, type TokenSource } from "./shared-rate-limit.ts";

type Call = (name?: string, caller?: string) => Promise<string | undefined>;

/** Replicas of one gateway with a limit. */
function createReplicas(
  count: number,
  rate: SharedRate,
  more: [string, SharedRate][] = [],
): {
  readonly clock: VirtualClock;
  readonly store: ReturnType<typeof withCounts>;
  /** By replica: makes a call, and resolves with its refusal, or undefined when it may go on. */
  readonly calls: readonly Call[];
  trouble: "none" | "fails" | "hangs";
} {
  const clock = createVirtualClock(1000);
  const store = withCounts(createMemoryClusterStore({ clock }));
  const replicas = {
    clock,
    store,
    trouble: "none" as "none" | "fails" | "hangs",
    calls: Array.from({ length: count }, () => createReplica()),
  };
  function createReplica(): Call {
    const source: TokenSource = {
      replicas: () => count,
      take: (limit, wanted) => {
        const taken = store.take(limit, wanted);
        if (replicas.trouble === "hangs") return new Promise(() => {});
        return replicas.trouble === "fails" ? Promise.reject(new Error("no engine")) : taken;
      },
    };
    const { middleware } = createSharedRateLimit({ rates: [[undefined, rate], ...more], source, clock });
    return async (name = "t", caller) => {
      const call = createOperation("tools/call", name);
      try {
        await middleware.beforeCall?.(call, createCallContext({ caller }));
        return undefined;
      } catch (error) {
        expect(error).toMatchObject({ code: "tool.rate_limited" });
        return (error as Error).message;
      }
    };
  }
  return replicas;
}

async function countOf(call: Call, times: number): Promise<number> {
  const told = await Promise.all(Array.from({ length: times }, () => call()));
  return told.filter((one) => one === undefined).length;
}

test("replicas share the burst of a caller, and each caller has its own", async () => {
  const { calls } = createReplicas(3, { callsPerMinute: 60 });
  const given = await Promise.all(calls.map((call) => countOf(call, 60)));
  expect(given.reduce((sum, one) => sum + one, 0)).toBe(60);
  expect(await calls[0]?.("t", "ada")).toBeUndefined();
  expect(await calls[0]?.()).toBe("No more than 60 calls a minute are allowed. Try again in 1 s.");
});

test("tokens are taken ahead in lots that double, and a call that finds a token there asks for nothing", async () => {
  const { store, calls } = createReplicas(1, { callsPerMinute: 600 });
  for (let number = 0; number < 600; number++) expect(await calls[0]?.()).toBeUndefined();
  // 1, 2, 4, 8, 16 and 32, then 61 each: one for the call that asks and a tenth of the burst.
  expect(store.counts.get("take")).toBe(15);
});

test("a caller far below its limit is not refused because it goes to each replica in turn", async () => {
  const { clock, calls } = createReplicas(3, { callsPerMinute: 60 });
  for (let number = 0; number < 360; number++) {
    expect(await calls[number % 3]?.()).toBeUndefined();
    await clock.advance(60_000 / 36);
  }
});

test("a caller that is forgotten between its calls is not refused because tokens were lost with it", async () => {
  const { calls } = createReplicas(1, { callsPerMinute: 60 });
  for (let number = 0; number < 12; number++) {
    expect(await calls[0]?.("t", "ada")).toBeUndefined();
    // As many as are remembered.
    for (let other = 0; other < 10_000; other++) await calls[0]?.("t", `other ${other}`);
  }
});

test("a strict limit asks for each call", async () => {
  const { store, calls } = createReplicas(1, { callsPerMinute: 600, strict: true });
  for (let number = 0; number < 100; number++) await calls[0]?.();
  expect(store.counts.get("take")).toBe(100);
});

test("a caller that is refused is refused again without a question, until there is a token", async () => {
  const { clock, store, calls } = createReplicas(1, { callsPerMinute: 60, burst: 1 });
  expect(await calls[0]?.()).toBeUndefined();
  expect(await countOf(calls[0]!, 50)).toBe(0);
  expect(store.counts.get("take")).toBe(2);
  await clock.advance(1000);
  expect(await countOf(calls[0]!, 50)).toBe(1);
});

test("a call must have a token of each rule that fits, and one that is refused uses none up", async () => {
  const { calls } = createReplicas(1, { callsPerMinute: 3 }, [["slow_*", { callsPerMinute: 1 }]]);
  expect(await calls[0]?.("slow_a")).toBeUndefined();
  expect(await calls[0]?.("slow_b")).toContain("1 call a minute of slow_*");
  expect([await calls[0]?.("fast"), await calls[0]?.("fast")]).toEqual([undefined, undefined]);
  expect(await calls[0]?.("fast")).toContain("3 calls a minute are allowed");
});

describe("while the store cannot be reached", () => {
  test("each replica allows its share, and the store is asked once a second", async () => {
    const replicas = createReplicas(3, { callsPerMinute: 60 });
    const { clock, store, calls } = replicas;
    replicas.trouble = "fails";
    expect(await Promise.all(calls.map((call) => countOf(call, 60)))).toEqual([20, 20, 20]);
    expect(store.counts.get("take")).toBe(3);
    await clock.advance(3000);
    expect(await countOf(calls[0]!, 10)).toBe(1);
    expect(store.counts.get("take")).toBe(4);
    replicas.trouble = "none";
    await clock.advance(60_000);
    expect(await countOf(calls[0]!, 100)).toBe(60);
  });

  test("a call waits for a quarter of a second at most", async () => {
    const replicas = createReplicas(2, { callsPerMinute: 60 });
    replicas.trouble = "hangs";
    let told: string | undefined = "nothing yet";
    void replicas.calls[0]?.().then((text) => (told = text));
    await replicas.clock.advance(249);
    expect(told).toBe("nothing yet");
    await replicas.clock.advance(1);
    expect(told).toBeUndefined();
    expect(await replicas.calls[0]?.()).toBeUndefined();
  });
});

test("replicas together allow at most the burst, a tenth of it, and what came back, in every stretch of time", async () => {
  const step = fc.record({
    replica: fc.nat({ max: 2 }),
    passMs: fc.integer({ min: 0, max: 3000 }),
    calls: fc.integer({ min: 1, max: 15 }),
  });
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 600 }),
      fc.option(fc.integer({ min: 1, max: 60 }), { nil: undefined }),
      fc.boolean(),
      fc.array(step, { minLength: 1, maxLength: 40 }),
      async (callsPerMinute, burst, strict, steps) => {
        const rate = { callsPerMinute, strict, ...(burst === undefined ? {} : { burst }) };
        const { clock, calls } = createReplicas(3, rate);
        const allowed: { readonly at: number; readonly count: number }[] = [];
        for (const { replica, passMs, calls: times } of steps) {
          await clock.advance(passMs);
          const call = calls[replica];
          if (call !== undefined) allowed.push({ at: clock.now(), count: await countOf(call, times) });
          const end = clock.now();
          let sum = 0;
          for (const { at, count } of allowed.toReversed()) {
            sum += count;
            const size = burst ?? callsPerMinute;
            const ahead = strict ? 0 : Math.floor(size / 10);
            const most = size + ahead + ((end - at) * callsPerMinute) / 60_000;
            expect(sum).toBeLessThanOrEqual(most + 1e-3);
          }
        }
      },
    ),
    { numRuns: runs(300) },
  );
});
