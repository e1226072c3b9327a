import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { turn } from "../../../test/support/fake-client.ts";
import { runs } from "../../../test/support/runs.ts";
import type { Client } from "../../client/client.ts";
import { UpstreamError } from "../../errors/upstream-error.ts";
import { createVirtualClock, type VirtualClock } from "../../testing/virtual-clock.ts";
import type { Line } from "./line.ts";
import { type Lease, Lines, type LinesOptions } from "./lines.ts";

const never = new AbortController().signal;

/** A line that only says whether it is open. */
interface FakeLine {
  readonly line: Line;
  readonly client: Client;
  isUp: boolean;
  isDisposed: boolean;
}

interface Made {
  readonly lines: Lines;
  readonly clock: VirtualClock;
  readonly made: FakeLine[];
  readonly open: () => number;
  take(key: string, isAlone?: boolean, signal?: AbortSignal): Promise<Lease>;
}

function make(options: Partial<LinesOptions> = {}, whenUp?: (signal: AbortSignal) => Promise<void>): Made {
  const clock = createVirtualClock(1_000_000);
  const made: FakeLine[] = [];
  const create = (): Line => {
    const client = {} as Client;
    const fake: FakeLine = {
      client,
      isUp: whenUp === undefined,
      isDisposed: false,
      line: {
        get client() {
          return fake.isUp ? client : undefined;
        },
        whenUp: async (signal: AbortSignal) => {
          await whenUp?.(signal);
          return client;
        },
        [Symbol.asyncDispose]: async () => {
          // Those that were made first take longest.
          for (let turns = 5; turns > made.indexOf(fake); turns--) await turn();
          fake.isDisposed = true;
        },
      } as unknown as Line,
    };
    made.push(fake);
    return fake.line;
  };
  const lines = new Lines({ spare: 0, server: "files", maxLines: 2, clock, ...options });
  return {
    lines,
    clock,
    made,
    open: () => made.filter(({ isDisposed }) => !isDisposed).length,
    take: (key, isAlone = true, signal = never) => lines.take("all", key, { isAlone, create }, signal),
  };
}

async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  const settled = promise.then(
    () => true,
    () => true,
  );
  return Promise.race([settled, turn().then(() => false)]);
}

describe("lending", () => {
  test("whoever calls one after the other meets the same line", async () => {
    const { take, made } = make();
    const first = await take("a");
    first.release();
    const second = await take("a");
    expect(second.line).toBe(first.line);
    expect(made).toHaveLength(1);
  });

  test("of several that are free, the one used last is lent", async () => {
    const { take, clock } = make();
    const [one, two] = [await take("a"), await take("a")];
    two.release();
    await clock.advance(1);
    one.release();
    expect((await take("a")).line).toBe(one.line);
  });

  test("one that is up is lent before one that is not", async () => {
    const { take, made, clock } = make();
    const [one, two] = [await take("a"), await take("a")];
    two.release();
    await clock.advance(1);
    one.release();
    const [fake] = made;
    if (fake !== undefined) fake.isUp = false;
    expect((await take("a")).line).toBe(two.line);
  });

  test("one that is not for one alone is lent to many at once", async () => {
    const { take, made } = make();
    const leases = await Promise.all(Array.from({ length: 5 }, () => take("a", false)));
    expect(new Set(leases.map(({ line }) => line)).size).toBe(1);
    expect(made).toHaveLength(1);
  });

  test("one key never gets the line of another", async () => {
    const { take } = make();
    const one = await take("a");
    one.release();
    expect((await take("b")).line).not.toBe(one.line);
  });

  test("at the limit an idle one of another key is closed first, the one not used for longest", async () => {
    const { take, made, clock, lines } = make();
    const one = await take("a");
    const two = await take("b");
    two.release();
    await clock.advance(1);
    one.release();
    await take("c");
    await expect.poll(() => made[1]?.isDisposed).toBe(true);
    expect(made.map(({ isDisposed }) => isDisposed)).toEqual([false, true, false]);
    expect(lines.size).toBe(2);
  });

  test("giving one back twice counts once", async () => {
    const { take } = make({ maxLines: 1 });
    const one = await take("a");
    one.release();
    const two = await take("a");
    one.release();
    expect(await isSettled(take("a"))).toBe(false);
    two.release();
  });

  test("a line that does not come up is given back", async () => {
    const failure = new UpstreamError("unavailable", "files", "not_sent", "no");
    const { take, lines, clock } = make({ maxLines: 1 }, () => Promise.reject(failure));
    await expect(take("a")).rejects.toBe(failure);
    await expect(take("a")).rejects.toBe(failure);
    expect(lines.size).toBe(1);
    await clock.advance(600_000);
    expect(lines.size).toBe(0);
  });
});

describe("waiting", () => {
  test("when all are lent, calls wait their turn in their order", async () => {
    const { take } = make({ maxLines: 1 });
    const first = await take("a");
    const order: string[] = [];
    const waiting = ["a", "b", "a"].map(async (key, index) => {
      const lease = await take(key);
      order.push(`${key}${index}`);
      return lease;
    });
    await turn();
    expect(order).toEqual([]);
    first.release();
    (await waiting[0])?.release();
    (await waiting[1])?.release();
    await waiting[2];
    expect(order).toEqual(["a0", "b1", "a2"]);
  });

  test("a newcomer does not get what somebody waited for", async () => {
    const { take } = make({ maxLines: 1 });
    const first = await take("a");
    const waiting = take("a");
    await turn();
    first.release();
    const newcomer = take("a");
    expect(await isSettled(waiting)).toBe(true);
    expect(await isSettled(newcomer)).toBe(false);
  });

  test("those who can share one are all let in when it comes", async () => {
    const { take } = make({ maxLines: 1 });
    const first = await take("a");
    const waiting = [take("b", false), take("b", false), take("b", false)];
    await turn();
    first.release();
    for (const each of waiting) expect(await isSettled(each)).toBe(true);
  });

  test("who gives up leaves the queue", async () => {
    const { take } = make({ maxLines: 1, maxWaiting: 1 });
    const first = await take("a");
    const controller = new AbortController();
    const waiting = take("a", true, controller.signal);
    await turn();
    controller.abort(new Error("enough"));
    await expect(waiting).rejects.toThrow("enough");
    const next = take("a");
    first.release();
    expect(await isSettled(next)).toBe(true);
  });

  test("more than may wait are refused at once, and nothing was sent", async () => {
    const { take } = make({ maxLines: 1, maxWaiting: 2 });
    const first = await take("a");
    const waiting = [take("a"), take("a")];
    await turn();
    await expect(take("a")).rejects.toMatchObject({ code: "upstream.busy", delivery: "not_sent" });
    first.release();
    (await waiting[0])?.release();
    await waiting[1];
  });

  test("who waited already is not refused because others came", async () => {
    const { take } = make({ maxLines: 1, maxWaiting: 1 });
    const first = await take("a", false);
    const second = await take("a", false);
    const waiting = take("b");
    await turn();
    // It still cannot have it, and somebody else would take its place in the queue.
    first.release();
    const late = take("c").catch((error: unknown) => error as UpstreamError);
    expect(await late).toMatchObject({ code: "upstream.busy" });
    second.release();
    expect(await isSettled(waiting)).toBe(true);
    await expect(waiting).resolves.toBeDefined();
  });
});

describe("ending", () => {
  test("lines nobody uses are closed after a while, and no timer stays", async () => {
    const { take, clock, open, lines } = make({ idleMs: 1000 });
    const lease = await take("a");
    await clock.advance(10_000);
    expect(open()).toBe(1);
    lease.release();
    await clock.advance(1600);
    expect(lines.size).toBe(0);
    await expect.poll(open).toBe(0);
    expect(clock.sleeping).toBe(0);
  });

  test("disposing refuses those who wait, opens nothing, and leaves nothing", async () => {
    const { take, lines, clock, open, made } = make({ maxLines: 1 });
    await take("a");
    const waiting = take("a");
    await turn();
    const refused = waiting.catch((error: unknown) => error);
    await lines[Symbol.asyncDispose]();
    expect(await refused).toMatchObject({ code: "upstream.unavailable", delivery: "not_sent" });
    await expect(take("a")).rejects.toMatchObject({ code: "upstream.unavailable", delivery: "not_sent" });
    expect(made).toHaveLength(1);
    expect(open()).toBe(0);
    expect(clock.sleeping).toBe(0);
  });

  test("disposing waits for those that were closed to make room", async () => {
    const { take, lines, open } = make({ maxLines: 1 });
    (await take("a")).release();
    (await take("b")).release();
    await lines[Symbol.asyncDispose]();
    expect(open()).toBe(0);
  });
});

/** What happens to lines. */
type Step =
  | { readonly kind: "take"; readonly key: string; readonly isAlone: boolean }
  | { readonly kind: "release" | "giveUp"; readonly which: number }
  | { readonly kind: "wait"; readonly ms: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    kind: fc.constant("take" as const),
    key: fc.constantFrom("a", "b", "c"),
    isAlone: fc.boolean(),
  }),
  fc.record({ kind: fc.constantFrom("release" as const, "giveUp" as const), which: fc.nat(10) }),
  fc.record({ kind: fc.constant("wait" as const), ms: fc.constantFrom(0, 1, 600, 5000) }),
);

test("whatever happens, nobody shares what is lent to one alone, the limit holds, everybody hears, nothing is left", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 3 }),
      fc.array(fc.tuple(step, fc.boolean()), { maxLength: 50, size: "max" }),
      async (maxLines, happening) => {
        const { take, lines, clock, open } = make({ maxLines, idleMs: 1000, maxWaiting: 20 });
        const lent = new Set<{ readonly lease: Lease; readonly isAlone: boolean }>();
        const waiting = new Map<Promise<void>, AbortController>();
        const check = (): void => {
          expect(lines.size).toBeLessThanOrEqual(maxLines);
          const all = [...lent];
          for (const { lease, isAlone } of all)
            if (isAlone) expect(all.filter((other) => other.lease.line === lease.line).length).toBe(1);
        };
        for (const [each, isTurn] of happening) {
          switch (each.kind) {
            case "take": {
              const controller = new AbortController();
              const key = `${each.key} ${each.isAlone}`;
              const taken: Promise<void> = take(key, each.isAlone, controller.signal)
                .then(
                  (lease) => void lent.add({ lease, isAlone: each.isAlone }),
                  () => {},
                )
                .finally(() => waiting.delete(taken));
              waiting.set(taken, controller);
              break;
            }
            case "release": {
              const one = [...lent][each.which];
              if (one !== undefined) lent.delete(one);
              one?.lease.release();
              break;
            }
            case "giveUp":
              [...waiting.values()][each.which]?.abort(new Error("enough"));
              break;
            case "wait":
              await clock.advance(each.ms);
              break;
          }
          if (isTurn) await turn();
          check();
        }
        for (let rounds = 0; rounds < 60 && (lent.size > 0 || waiting.size > 0); rounds++) {
          for (const one of lent) one.lease.release();
          lent.clear();
          await turn();
          check();
        }
        expect(waiting.size).toBe(0);
        await lines[Symbol.asyncDispose]();
        expect(open()).toBe(0);
        expect(clock.sleeping).toBe(0);
      },
    ),
    { numRuns: runs(300) },
  );
});
