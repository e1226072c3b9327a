import type { Clock } from "../../async/clock.ts";

export interface StartSlotsOptions {
  readonly clock: Clock;
  /** Most processes that start at the same time. */
  readonly maxStarts: number;
  /** How long one start may keep the others waiting; 30 s. */
  readonly maxHoldMs?: number;
}

/** A start that waits for its turn. */
interface Waiting {
  readonly isUrgent: () => boolean;
  readonly begin: () => void;
}

/**
 * Limits how many servers start at the same time: forty programs that start at once take the processor from each other until
 * all of them are too slow. A start that takes very long gives its slot to the next one and goes on.
 */
export class StartSlots {
  readonly #options: Required<StartSlotsOptions>;
  readonly #waiting = new Set<Waiting>();
  #taken = 0;

  constructor(options: StartSlotsOptions) {
    this.#options = { maxHoldMs: 30_000, ...options };
  }

  /** How many starts wait for their turn. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /**
   * Resolves, when it is this start's turn, with a function that gives the slot back. A start that `isUrgent` comes before
   * the others. Rejects with the signal's reason when it aborts first.
   */
  take(isUrgent: () => boolean, signal: AbortSignal): Promise<() => void> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      const leave = (): void => {
        this.#waiting.delete(waiting);
        reject(signal.reason);
      };
      const waiting: Waiting = {
        isUrgent,
        begin: () => {
          signal.removeEventListener("abort", leave);
          resolve(this.#hold());
        },
      };
      signal.addEventListener("abort", leave, { once: true });
      this.#waiting.add(waiting);
      this.#next();
    });
  }

  #hold(): () => void {
    const { clock, maxHoldMs } = this.#options;
    this.#taken++;
    let isHeld = true;
    const release = (): void => {
      if (!isHeld) return;
      isHeld = false;
      stop();
      this.#taken--;
      this.#next();
    };
    const stop = clock.timer(maxHoldMs, release);
    return release;
  }

  #next(): void {
    while (this.#taken < this.#options.maxStarts && this.#waiting.size > 0) {
      const all = [...this.#waiting];
      const next = all.find(({ isUrgent }) => isUrgent()) ?? all[0];
      if (next === undefined) return;
      this.#waiting.delete(next);
      next.begin();
    }
  }
}
