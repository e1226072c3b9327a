/** Time, injected so that tests can run it by hand. */
export interface Clock {
  /** Milliseconds since some moment. It never jumps: for intervals, deadlines, ages and whatever else waits or expires. */
  now(): number;
  /** Milliseconds since the epoch, by the wall clock. It can be set and can jump: use it for dates only. */
  date(): number;
  /** Calls back once after a while, unless the returned function is called first. */
  timer(ms: number, callback: () => void): () => void;
  /** The same, for housekeeping: a process does not stay alive for it. */
  idleTimer?(ms: number, callback: () => void): () => void;
}

/** The longest delay of a timer, about 25 days. With a longer one it would fire at once. */
const maxTimerMs = 2 ** 31 - 1;

/** Milliseconds by a clock that does not jump. The first use of `performance` would load eleven modules of Node into every server. */
function monotonicMs(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1000 + nanoseconds / 1e6;
}

/** Added to readings, so that a reading of 0 is long ago even on a machine that has just started. */
const originMs = Date.now() - monotonicMs();

/** The time of this machine. */
export const systemClock: Clock = {
  now: () => Math.floor(originMs + monotonicMs()),
  date: () => Date.now(),
  timer: (ms, callback) => {
    const timer = setTimeout(callback, Math.min(ms, maxTimerMs));
    return () => clearTimeout(timer);
  },
  idleTimer: (ms, callback) => {
    const timer = setTimeout(callback, Math.min(ms, maxTimerMs)).unref();
    return () => clearTimeout(timer);
  },
};

/** Length of the intervals that {@link awakeTimer} measures. */
const awakeSliceMs = 250;

/**
 * Calls back once, after this process was awake for `ms`; the returned function stops it. Time is measured in intervals, and one that
 * ends 250 ms late or more does not count: the process was stopped or starved, and has input that it has not read. After five
 * times `ms` it calls back in any case.
 */
export function awakeTimer(clock: Clock, ms: number, callback: () => void): () => void {
  const startedAt = clock.now();
  let awakeMs = 0;
  let stop = (): void => {};
  const wait = (): void => {
    const sliceMs = Math.min(awakeSliceMs, ms - awakeMs);
    const dueAt = clock.now() + sliceMs;
    stop = clock.timer(sliceMs, () => {
      const now = clock.now();
      if (now - dueAt < awakeSliceMs) awakeMs += sliceMs;
      if (awakeMs >= ms || now - startedAt >= 5 * ms) callback();
      else wait();
    });
  };
  wait();
  return () => stop();
}

/** The date of an earlier reading of a clock's `now`, as text. */
export function dateOf(reading: number, clock: Clock): string {
  return new Date(clock.date() - (clock.now() - reading)).toISOString();
}

/** How long a promise is waited for. Without limits it is waited for until it settles. */
interface WaitLimits {
  /** Aborting rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** After this time the wait resolves with {@link timedOut}. */
  readonly ms?: number | undefined;
  readonly clock?: Clock;
}

/** The result of a wait that ran out of time before the promise settled. */
export const timedOut: unique symbol = Symbol("timed out");

/**
 * Settles as the promise does, unless a limit is reached first. Leaves no timer and no listener behind. The work behind the
 * promise goes on; a rejection that comes after the limit is dropped.
 */
export function waitFor<T>(promise: Promise<T>, limits: Pick<WaitLimits, "signal">): Promise<T>;
export function waitFor<T>(promise: Promise<T>, limits: WaitLimits): Promise<T | typeof timedOut>;
export function waitFor<T>(promise: Promise<T>, limits: WaitLimits): Promise<T | typeof timedOut> {
  return wait(promise, limits);
}

/** Resolves after a while; rejects with the signal's reason when it aborts first. Leaves no timer behind. */
export async function sleep(ms: number, clock: Clock, signal?: AbortSignal): Promise<void> {
  await wait(undefined, { ms, clock, signal });
}

function wait<T>(promise: Promise<T> | undefined, limits: WaitLimits): Promise<T | typeof timedOut> {
  const { signal, ms, clock = systemClock } = limits;
  return new Promise((resolve, reject) => {
    let stopTimer: (() => void) | undefined;
    const onAbort = (): void => end(() => reject(signal?.reason));
    const end = (settle: () => void): void => {
      stopTimer?.();
      signal?.removeEventListener("abort", onAbort);
      settle();
    };
    promise?.then(
      (value) => end(() => resolve(value)),
      (error: unknown) => end(() => reject(error)),
    );
    if (signal?.aborted === true) return onAbort();
    signal?.addEventListener("abort", onAbort, { once: true });
    if (ms !== undefined) stopTimer = clock.timer(ms, () => end(() => resolve(timedOut)));
  });
}

/** The CPU time of this process so far. */
export function cpuTime(): NodeJS.CpuUsage {
  return process.cpuUsage();
}

/**
 * Milliseconds of CPU time since an earlier reading. Unlike a clock, it does not advance
 * while other processes have the processor. All threads of the process count, so it is never
 * less than what this one used.
 */
export function cpuMsSince(earlier: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(earlier);
  return (user + system) / 1000;
}

/** Longest slice of work. Then other work has its turn. */
const sliceMs = 0.25;

/** The first 100 slices (25 ms) follow each other at once, so most lists are read soon. Before each later slice there is a pause. */
const promptSlices = 100;
const pauseMs = 2;

/**
 * Cuts long work into slices. Call the function before each step: it returns a promise to await when other
 * work should have its turn. Very long work takes a tenth of the time, so calls beside it are hardly slower.
 */
export function createSlices(): () => Promise<void> | undefined {
  let slices = 0;
  let endsAt = performance.now() + sliceMs;
  return () => {
    if (performance.now() <= endsAt) return undefined;
    slices++;
    return new Promise((resolve) => {
      const goOn = (): void => {
        endsAt = performance.now() + sliceMs;
        resolve();
      };
      if (slices > promptSlices) setTimeout(goOn, pauseMs);
      else setImmediate(goOn);
    });
  };
}
