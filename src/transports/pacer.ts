import type { Clock } from "../async/clock.ts";

export interface PacerOptions {
  /** How much may come at once. */
  readonly burstBytes: number;
  readonly bytesPerSecond: number;
  readonly clock: Clock;
  readonly pause: () => void;
  readonly resume: () => void;
}

/** Lets a stream come as it likes up to an amount, and beyond that no faster than a rate: whoever floods has to wait. */
export class Pacer {
  readonly #options: PacerOptions;
  /** When all that came is paid for. */
  #paidAt = 0;
  #stopTimer: (() => void) | undefined;
  #isFree = false;

  constructor(options: PacerOptions) {
    this.#options = options;
  }

  /** Whether the stream has to wait. */
  get isPausing(): boolean {
    return this.#stopTimer !== undefined;
  }

  /** So much came. */
  charge(bytes: number): void {
    const { burstBytes, bytesPerSecond, clock, pause } = this.#options;
    const now = clock.now();
    const burstMs = (burstBytes / bytesPerSecond) * 1000;
    this.#paidAt = Math.max(this.#paidAt, now - burstMs) + (bytes / bytesPerSecond) * 1000;
    if (this.#paidAt <= now || this.#isFree || this.isPausing) return;
    pause();
    this.#stopTimer = clock.timer(this.#paidAt - now, () => this.#goOn());
  }

  /** From now on everything may come: what is left, of somebody who has gone. */
  free(): void {
    this.#isFree = true;
    if (this.isPausing) this.#goOn();
  }

  #goOn(): void {
    this.#stopTimer?.();
    this.#stopTimer = undefined;
    this.#options.resume();
  }
}
