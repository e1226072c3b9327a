import { cpuMsSince, cpuTime } from "@junctor/core/async";

/** Work that can be left off and taken up again. It yields how much was done since the last time, about one unit a character or a term. */
export type SlicedWork<T> = Generator<number, T>;

/** Units of work after which others get their turn: about 1 ms of a usual processor. */
const maxUnits = 10_000;
/** CPU time of this process after which they get it too, on a processor that is slower. */
const maxCpuMs = 4;

/**
 * Does work in slices, between which the event loop does other work. A slice ends by what was done in it, not by the clock on the wall:
 * on a busy machine time passes in which nothing was done.
 */
export async function inSlices<T>(work: SlicedWork<T>): Promise<T> {
  for (;;) {
    const begun = cpuTime();
    let units = 0;
    let isOver = false;
    while (!isOver) {
      const step = work.next();
      if (step.done === true) return step.value;
      units += step.value;
      isOver = units >= maxUnits || cpuMsSince(begun) >= maxCpuMs;
    }
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
}
