import { type Clock, sleep } from "@junctor/core/async";

interface RenewalsOptions {
  readonly clock: Clock;
  /** Makes one renewal. */
  readonly renew: (startedAt: number) => Promise<void>;
  /** How long after the start of one the next may start. */
  readonly gapMs: number;
  /** How long after the start of one that succeeded the next starts by itself, and after the end of one that failed. */
  readonly everyMs: number;
  readonly retryMs: number;
}

/** Renewals that come one after the other. */
interface Renewals {
  /** Resolves after a renewal that started later than this call. All who wait share it. */
  next(): Promise<void>;
  /** Makes one after the other from now on, until it is stopped. */
  start(): void;
  /** Resolves when none is underway. */
  stop(): Promise<void>;
}

export function createRenewals({ clock, renew, gapMs, everyMs, retryMs }: RenewalsOptions): Renewals {
  let startedAt = -Infinity;
  let isStopped = false;
  let underway: Promise<void> | undefined;
  let waiting: Promise<void> | undefined;
  let stopTimer = (): void => {};

  const run = async (): Promise<void> => {
    await underway?.catch(() => {});
    const waitMs = startedAt + gapMs - clock.now();
    if (waitMs > 0) await sleep(waitMs, clock);
    waiting = undefined;
    startedAt = clock.now();
    underway = renew(startedAt).finally(() => (underway = undefined));
    await underway;
  };
  const next = (): Promise<void> => (waiting ??= run());
  const again = (ms: number): void => {
    if (isStopped) return;
    stopTimer = clock.timer(ms, () => {
      next().then(
        () => again(Math.max(1, startedAt + everyMs - clock.now())),
        () => again(retryMs),
      );
    });
  };
  return {
    next,
    start: () => again(everyMs),
    stop: async () => {
      isStopped = true;
      stopTimer();
      await underway?.catch(() => {});
    },
  };
}
