import { getEventListeners } from "node:events";
import { describe, expect, test } from "vitest";
import { createVirtualClock } from "../../../junctor/src/testing/virtual-clock.ts";
import { AbortedError } from "../errors/index.ts";
import type { Clock } from "./clock.ts";
import { type Deadline, Deadlines, type TimeLimits } from "./deadline.ts";

function createDeadline({ clock, ...limits }: TimeLimits & { readonly clock: Clock }): Deadline {
  return new Deadlines(clock, () => ({})).start(limits);
}

describe("a deadline", () => {
  test("fires when nothing happened for too long", async () => {
    const clock = createVirtualClock();
    using deadline = createDeadline({ timeoutMs: 100, clock });
    await clock.advance(60);
    deadline.touch();
    await clock.advance(99);
    expect(deadline.stop.signal.aborted).toBe(false);
    await clock.advance(1);
    expect(deadline.stop.signal.reason).toMatchObject({ kind: "idle", timeoutMs: 100 });
  });

  test("fires when the whole took too long, touched or not", async () => {
    const clock = createVirtualClock();
    using deadline = createDeadline({ timeoutMs: 100, maxTotalMs: 250, clock });
    for (let step = 0; step < 5; step++) {
      await clock.advance(50);
      deadline.touch();
    }
    expect(deadline.stop.signal.reason).toMatchObject({ kind: "total", timeoutMs: 250 });
  });

  test("stands still while it is held, by as many as hold it", async () => {
    const clock = createVirtualClock();
    using deadline = createDeadline({ timeoutMs: 100, clock });
    const first = deadline.hold();
    const second = deadline.hold();
    await clock.advance(1000);
    first();
    first();
    await clock.advance(1000);
    expect(deadline.stop.signal.aborted).toBe(false);
    second();
    await clock.advance(99);
    expect(deadline.stop.signal.aborted).toBe(false);
    await clock.advance(101);
    expect(deadline.stop.signal.aborted).toBe(true);
  });

  test.each([true, false])("says whether anything was sent: %s", async (isSent) => {
    const clock = createVirtualClock();
    using deadline = createDeadline({ timeoutMs: 1, clock });
    deadline.isSent = isSent;
    await clock.advance(1);
    expect(deadline.stop.signal.reason).toMatchObject({ delivery: isSent ? "outcome_unknown" : "not_sent" });
  });

  test("passes on that the caller gave up, also when that was before", () => {
    const clock = createVirtualClock();
    using deadline = createDeadline({ signal: AbortSignal.abort("why"), clock });
    expect(deadline.stop.signal.reason).toBeInstanceOf(AbortedError);
    expect(deadline.stop.signal.reason).toMatchObject({ cause: "why" });
  });

  test("leaves no timer and no listener behind", () => {
    const clock = createVirtualClock();
    const { signal } = new AbortController();
    createDeadline({ timeoutMs: 1, maxTotalMs: 1, signal, clock })[Symbol.dispose]();
    expect(clock.sleeping).toBe(0);
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });

  test("that is let go after its end leaves no timer behind", () => {
    const clock = createVirtualClock();
    const deadline = createDeadline({ timeoutMs: 1, clock });
    const release = deadline.hold();
    deadline[Symbol.dispose]();
    release();
    expect(clock.sleeping).toBe(0);
  });
});
