import type { Clock } from "../../async/clock.ts";
import { cpuMsSince, cpuTime } from "../../async/cpu-time.ts";
import { LeakyBucket } from "../../async/leaky-bucket.ts";
import { withinTime } from "../../schema/time-box.ts";

/** How long one reading may take. Nothing else is served meanwhile. */
const maxReadingMs = 250;
/** Each millisecond of CPU time is paid for with so many: a caller that never stops takes a fortieth of the process. */
const price = 40;
/** Most callers that are remembered. */
const maxOwners = 1024;

/** The time that callers take to read kept results. A caller that took too much of it has to wait. */
export class ReadingTime {
  readonly #clock: Clock;
  readonly #owners = new Map<string, LeakyBucket>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Reads for an owner. Gives the milliseconds to wait, and reads nothing, where the owner's earlier readings are not paid for.
   * Throws an `ExhaustedError` for a reading that takes too long.
   */
  run<T extends object>(owner: string, read: () => T): T | number {
    const bucket = this.#bucketOf(owner);
    const waitMs = bucket.charge(0);
    if (waitMs > 0) return waitMs;
    const begun = cpuTime();
    try {
      return withinTime(maxReadingMs, read);
    } finally {
      bucket.charge(cpuMsSince(begun) * price);
    }
  }

  #bucketOf(owner: string): LeakyBucket {
    const bucket = this.#owners.get(owner) ?? new LeakyBucket(this.#clock, maxReadingMs * price);
    this.#owners.delete(owner);
    this.#owners.set(owner, bucket);
    const [oldest] = this.#owners.keys();
    if (this.#owners.size > maxOwners && oldest !== undefined) this.#owners.delete(oldest);
    return bucket;
  }
}
