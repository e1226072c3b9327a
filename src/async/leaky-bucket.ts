import type { Clock } from "./clock.ts";

/** Lets work through whose cost is time: up to `burstMs` at once, and beyond that no faster than it is paid for. */
export class LeakyBucket {
  readonly #clock: Clock;
  readonly #burstMs: number;
  /** When all the work so far is paid for. */
  #paidAt = 0;

  constructor(clock: Clock, burstMs: number) {
    this.#clock = clock;
    this.#burstMs = burstMs;
  }

  /** Charges for some work. Gives how long to wait until all is paid for; 0 within the burst. */
  charge(costMs: number): number {
    const now = this.#clock.now();
    if (costMs > 0) this.#paidAt = Math.max(this.#paidAt, now - this.#burstMs) + costMs;
    return Math.max(0, this.#paidAt - now);
  }
}
