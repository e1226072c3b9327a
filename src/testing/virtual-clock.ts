import type { Clock } from "../async/clock.ts";

/** Time that stands still until a test moves it. */
export interface VirtualClock extends Clock {
  /** How many sleeps have not ended. */
  readonly sleeping: number;
  /** Moves the time on. Sleeps end in their order, and what they wake runs before the next one ends. */
  advance(ms: number): Promise<void>;
}

interface Sleep {
  readonly until: number;
  readonly wake: () => void;
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
  const sleeps = new Set<Sleep>();
  let now = startMs;

  const nextUntil = (limit: number): Sleep | undefined => {
    const due = [...sleeps].filter(({ until }) => until <= limit);
    return due.toSorted((a, b) => a.until - b.until)[0];
  };

  return {
    now: () => now,
    get sleeping() {
      return sleeps.size;
    },
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        if (signal?.aborted === true) return reject(signal.reason);
        const end = (settle: () => void): void => {
          sleeps.delete(sleep);
          signal?.removeEventListener("abort", onAbort);
          settle();
        };
        const onAbort = (): void => end(() => reject(signal?.reason));
        const sleep: Sleep = { until: now + ms, wake: () => end(resolve) };
        sleeps.add(sleep);
        signal?.addEventListener("abort", onAbort, { once: true });
      }),
    advance: async (ms) => {
      const target = now + ms;
      await turn();
      for (let sleep = nextUntil(target); sleep !== undefined; sleep = nextUntil(target)) {
        now = Math.max(now, sleep.until);
        sleep.wake();
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
