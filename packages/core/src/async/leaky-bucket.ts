import type { Clock } from "./clock.ts";
import { setNewest } from "./set-newest.ts";

/** Most owners that are remembered. The one that was not seen for longest is forgotten first, and has a full burst when seen again. */
const maxOwners = 1024;

/** Lets work through whose cost is time: up to `burstMs` at once, and beyond that no faster than it is paid for. */
export class LeakyBucket {
  readonly #clock: Clock;
  readonly #burstMs: () => number;
  /** When all the work so far is paid for. */
  #paidAt = Number.NEGATIVE_INFINITY;

  /** The burst is a number, or a function that gives it when it counts. */
  constructor(clock: Clock, burstMs: number | (() => number)) {
    this.#clock = clock;
    this.#burstMs = typeof burstMs === "function" ? burstMs : () => burstMs;
  }

  /** Charges for some work. Gives how long to wait until all is paid for; 0 within the burst. */
  charge(costMs: number): number {
    const now = this.#clock.now();
    if (costMs > 0) this.#paidAt = Math.max(this.#paidAt, now - this.#burstMs()) + costMs;
    return Math.max(0, this.#paidAt - now);
  }
}

/** A bucket for each owner. */
export class LeakyBuckets<Owner> {
  readonly #clock: Clock;
  readonly #burstMs: number | (() => number);
  readonly #owners = new Map<Owner, LeakyBucket>();

  constructor(clock: Clock, burstMs: number | (() => number)) {
    this.#clock = clock;
    this.#burstMs = burstMs;
  }

  of(owner: Owner): LeakyBucket {
    const bucket = this.#owners.get(owner) ?? new LeakyBucket(this.#clock, this.#burstMs);
    setNewest(this.#owners, owner, bucket, maxOwners);
    return bucket;
  }
}
