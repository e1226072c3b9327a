import { type Clock, cpuMsSince, cpuTime, LeakyBuckets } from "@junctor/core/async";
import { withinTime } from "@junctor/core/schema";

/** How long one reading may take. Nothing else is served meanwhile. */
const maxReadingMs = 250;
/** Each millisecond of CPU time is paid for with so many: a caller that never stops takes a fortieth of the process. */
const price = 40;

/** The time that callers take to read kept results. A caller that took too much of it has to wait. */
export class ReadingTime {
  readonly #buckets: LeakyBuckets<string>;

  constructor(clock: Clock) {
    this.#buckets = new LeakyBuckets(clock, maxReadingMs * price);
  }

  /**
   * Reads for an owner. Gives the milliseconds to wait, and reads nothing, where the owner's earlier readings are not paid for.
   * Throws an `ExhaustedError` for a reading that takes too long.
   */
  run<T extends object>(owner: string, read: () => T): T | number {
    const bucket = this.#buckets.of(owner);
    const waitMs = bucket.charge(0);
    if (waitMs > 0) return waitMs;
    const begun = cpuTime();
    try {
      return withinTime(maxReadingMs, read);
    } finally {
      bucket.charge(cpuMsSince(begun) * price);
    }
  }
}
