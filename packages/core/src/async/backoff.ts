interface BackoffOptions {
  readonly minMs?: number;
  readonly maxMs?: number;
  /** A number from 0 to 1; injected so that tests can replay. */
  readonly random?: () => number;
}

/** How long to wait before trying again. */
export interface Backoff {
  /** The next delay: twice the last, up to the limit, with half of it left to chance so that many do not come at once. */
  next(): number;
  /** It works again. Call it after a while of working, not on the first sign of life: that is how storms start. */
  reset(): void;
}

export function createBackoff({
  minMs = 250,
  maxMs = 30_000,
  random = Math.random,
}: BackoffOptions = {}): Backoff {
  let step = 0;
  return {
    next: () => {
      const full = Math.min(maxMs, minMs * 2 ** step);
      step = Math.min(step + 1, 30);
      return full / 2 + (full / 2) * random();
    },
    reset: () => {
      step = 0;
    },
  };
}
