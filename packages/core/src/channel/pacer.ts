import { type Clock, LeakyBucket } from "../async/index.ts";

interface PacerOptions {
  /** How much may come at once. */
  readonly burstBytes: number;
  readonly bytesPerSecond: number;
  readonly clock: Clock;
  readonly pause: () => void;
  readonly resume: () => void;
}

/** Lets a stream come as it likes up to an amount, and beyond that no faster than a rate: a sender that floods has to wait. */
export class Pacer {
  readonly #options: PacerOptions;
  readonly #bucket: LeakyBucket;
  #stopTimer: (() => void) | undefined;
  #isFree = false;

  constructor(options: PacerOptions) {
    const { burstBytes, bytesPerSecond, clock } = options;
    this.#options = options;
    this.#bucket = new LeakyBucket(clock, (burstBytes / bytesPerSecond) * 1000);
  }

  /** Whether the stream has to wait. */
  get isPausing(): boolean {
    return this.#stopTimer !== undefined;
  }

  /** So much came. */
  charge(bytes: number): void {
    const { bytesPerSecond, clock, pause } = this.#options;
    const waitMs = this.#bucket.charge((bytes / bytesPerSecond) * 1000);
    if (waitMs === 0 || this.#isFree || this.isPausing) return;
    pause();
    this.#stopTimer = clock.timer(waitMs, () => this.#goOn());
  }

  /** Lets everything through from now on: the sender has gone, and the rest is finite. */
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
