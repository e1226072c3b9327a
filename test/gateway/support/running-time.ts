import { openSync, readSync } from "node:fs";
import { type Clock, systemClock } from "../../../packages/core/src/async/clock.ts";

/** How long something took in this process, while other programs may have kept the machine busy. */
interface RunningTime {
  /** By the clock, without the time for which the main thread was ready to run and other programs ran instead. */
  readonly clockMs: number;
  /**
   * The main thread ran no longer than this: the lesser of `clockMs` and the CPU time of all threads. The CPU time alone is too much: a
   * call does not wait for the threads that compile and collect garbage beside it. The clock alone is too much where the main thread waits.
   */
  readonly runningMs: number;
}

/** Measures from now until the returned function is called. */
export function startRunningTime(): () => RunningTime {
  const beforeMs = performance.now() - readStarvedMs();
  const before = process.cpuUsage();
  return () => {
    const { user, system } = process.cpuUsage(before);
    const clockMs = performance.now() - readStarvedMs() - beforeMs;
    return { clockMs, runningMs: Math.min((user + system) / 1000, clockMs) };
  };
}

/**
 * A clock that stands still while this process is ready to run and other programs run instead. A gateway lets a flood in at a rate of
 * time. While it waits for a processor, more of the flood gathers, and a busy machine would charge its calls with that.
 */
export function createRunningClock(): Clock {
  let readAt = -Infinity;
  let starvedMs = 0;
  const now = (): number => {
    const at = performance.now();
    // The kernel is asked once a millisecond at most.
    if (at - readAt >= 1) [readAt, starvedMs] = [at, readStarvedMs()];
    return Math.floor(performance.timeOrigin + at - starvedMs);
  };
  return {
    now,
    date: () => systemClock.date(),
    timer: (ms, callback) => {
      const dueAt = now() + ms;
      let stop = (): void => {};
      const start = (leftMs: number): void => {
        stop = systemClock.timer(leftMs, () => {
          const moreMs = dueAt - now();
          if (moreMs > 0) start(moreMs);
          else callback();
        });
      };
      start(ms);
      return () => stop();
    },
  };
}

const file = process.platform === "linux" ? openSync("/proc/self/schedstat", "r") : undefined;
const buffer = Buffer.alloc(96);

/** How long the main thread has waited for a processor so far; 0 where the system does not tell. */
function readStarvedMs(): number {
  if (file === undefined) return 0;
  const length = readSync(file, buffer, 0, buffer.length, 0);
  return Number(buffer.toString("latin1", 0, length).split(" ", 2)[1]) / 1e6;
}
