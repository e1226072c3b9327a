/** Time, injected so that tests can run it by hand. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Calls back once after a while, unless the returned function is called first. */
  timer(ms: number, callback: () => void): () => void;
}

/** Timers take no more, about 25 days; with a greater number they would fire at once. */
const maxTimerMs = 2 ** 31 - 1;

/** The time of this machine. */
export const systemClock: Clock = {
  now: () => Date.now(),
  timer: (ms, callback) => {
    const timer = setTimeout(callback, Math.min(ms, maxTimerMs));
    return () => clearTimeout(timer);
  },
};

/** Resolves after a while; rejects with the signal's reason when it aborts first. Leaves no timer behind. */
export function sleep(ms: number, clock: Clock, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) return reject(signal.reason);
    const onAbort = (): void => {
      stop();
      reject(signal?.reason);
    };
    const stop = clock.timer(ms, () => {
      signal?.removeEventListener("abort", onAbort);
      resolve();
    });
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}

/**
 * Waits for a promise, but not longer than `ms`; tells whether it settled. Rejects with the signal's reason when it aborts
 * first. Leaves no timer and no listener behind.
 */
export function settlesWithin(
  promise: Promise<unknown>,
  ms: number,
  clock: Clock,
  signal?: AbortSignal,
): Promise<boolean> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) return reject(signal.reason);
    const end = (): void => {
      stop();
      signal?.removeEventListener("abort", onAbort);
    };
    const onAbort = (): void => {
      end();
      reject(signal?.reason);
    };
    const settled = (): void => {
      end();
      resolve(true);
    };
    const stop = clock.timer(ms, () => {
      end();
      resolve(false);
    });
    signal?.addEventListener("abort", onAbort, { once: true });
    promise.then(settled, settled);
  });
}
