import type { Clock } from "@junctor/core/async";

/** Time that stands still until a test moves it. */
export interface VirtualClock extends Clock {
  /** How many timers are running. */
  readonly sleeping: number;
  /** Moves the time on. Timers fire in their order, and what one wakes runs before the next one fires. */
  advance(ms: number): Promise<void>;
}

interface Timer {
  readonly until: number;
  readonly fire: () => void;
}

/**
 * A clock for tests.
 *
 * @example
 * const clock = createVirtualClock();
 * const server = createServer(registry, info, { clock });
 * await clock.advance(10 * 60_000);
 */
export function createVirtualClock(startMs = 0): VirtualClock {
  const timers = new Set<Timer>();
  let now = startMs;

  const nextUntil = (limit: number): Timer | undefined => {
    const due = [...timers].filter(({ until }) => until <= limit);
    return due.toSorted((a, b) => a.until - b.until)[0];
  };

  return {
    now: () => now,
    date: () => now,
    get sleeping() {
      return timers.size;
    },
    timer: (ms, fire) => {
      const timer: Timer = { until: now + ms, fire };
      timers.add(timer);
      return () => timers.delete(timer);
    },
    advance: async (ms) => {
      const target = now + ms;
      await turn();
      for (let timer = nextUntil(target); timer !== undefined; timer = nextUntil(target)) {
        now = Math.max(now, timer.until);
        timers.delete(timer);
        timer.fire();
        await turn();
      }
      now = target;
    },
  };
}

/** Lets everything run that is ready to. */
function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
