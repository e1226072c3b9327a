import type { Clock } from "@junctor/core/async";
import type { Failure } from "./health.ts";

interface StartGateOptions {
  readonly clock: Clock;
  /** Most starts within the window. */
  readonly maxStarts?: number;
  readonly windowMs?: number;
}

/** Counts the starts of one server, so that one that cannot stay up is not started again and again. */
export class StartGate {
  readonly #clock: Clock;
  readonly #maxStarts: number;
  readonly #windowMs: number;
  /** When the last few starts were, oldest first; never more than the limit. */
  #starts: readonly number[] = [];
  /** Why the last thing that was started failed. */
  failure: Failure | undefined;

  constructor({ clock, maxStarts = 6, windowMs = 60_000 }: StartGateOptions) {
    this.#clock = clock;
    this.#maxStarts = maxStarts;
    this.#windowMs = windowMs;
  }

  /** How long the next start has to wait; 0 when it may be now. */
  get delayMs(): number {
    if (this.#starts.length < this.#maxStarts) return 0;
    return Math.max(0, (this.#starts[0] ?? 0) + this.#windowMs - this.#clock.now());
  }

  /** Something was started. */
  note(): void {
    this.#starts = [...this.#starts, this.#clock.now()].slice(-this.#maxStarts);
  }
}
