import { openSync, readSync } from "node:fs";
import { type Clock, systemClock } from "../../src/async/clock.ts";

/**
 * Measures how long the main thread runs from now until the returned function is called, at most: no longer than all threads of
 * this process together, and no longer than the time that went by without the waits for a processor. (The kernel
 * counts the time of one thread in ticks of milliseconds.)
 */
export function startMeasure(): () => number {
  const beforeMs = performance.now() - readStarvedMs();
  const before = process.cpuUsage();
  return () => {
    const { user, system } = process.cpuUsage(before);
    return Math.min((user + system) / 1000, performance.now() - readStarvedMs() - beforeMs);
  };
}

/**
 * The time of this machine without the time for which this process was ready to run and another program ran instead. The
 * gateway lets a flood in at a rate of time, and with the time of a busy machine each of its calls would meet more of the flood.
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

const file = openSync("/proc/self/schedstat", "r");
const buffer = Buffer.alloc(96);

/** How long the main thread of this process has waited for a processor so far. */
function readStarvedMs(): number {
  const length = readSync(file, buffer, 0, buffer.length, 0);
  return Number(buffer.toString("latin1", 0, length).split(" ", 2)[1]) / 1e6;
}
