import type { Clock } from "@junctor/core/async";

interface StartSlotsOptions {
  readonly clock: Clock;
  /** Most processes that start at the same time. */
  readonly maxStarts: number;
  /** How long one start may keep the others waiting, however busy it is; 30 s. */
  readonly maxHoldMs?: number;
  /** How often a start is looked at; 1 s. */
  readonly lookMs?: number;
}

/** A server that starts, as far as its slot is concerned. */
export interface Start {
  /** Whether a call waits for it: it comes before the others. */
  readonly isUrgent: () => boolean;
  /** The processor time it used so far, in milliseconds; undefined while it does not run. */
  readonly processorMs: () => number | undefined;
  /** Aborting gives up the wait for a slot. */
  readonly signal: AbortSignal;
}

/** A start that waits for its turn. */
interface WaitingStart {
  readonly start: Start;
  readonly begin: () => void;
}

/** One that uses less between two looks, as part of that time, waits for something and keeps no other from starting. */
const minShare = 0.1;

/** How long {@link StartSlots.startGently} holds. */
const gentleMs = 1000;

/**
 * Limits how many servers start at the same time: forty programs that start at once take the processor from each other until
 * all of them are too slow. A start that is not busy, or takes very long, gives its slot to the next one and continues.
 */
export class StartSlots {
  readonly #options: Required<StartSlotsOptions>;
  readonly #waiting = new Set<WaitingStart>();
  #taken = 0;
  #maxTaken: number;

  constructor(options: StartSlotsOptions) {
    this.#options = { maxHoldMs: 30_000, lookMs: 1000, ...options };
    this.#maxTaken = options.maxStarts;
  }

  /** Lets servers start one at a time during the first second, when a client is likely to ask for the lists. */
  startGently(): void {
    const { clock, maxStarts } = this.#options;
    this.#maxTaken = 1;
    (clock.idleTimer ?? clock.timer)(gentleMs, () => {
      this.#maxTaken = maxStarts;
      this.#next();
    });
  }

  /** How many starts wait for their turn. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** Whether the next start has to wait for its turn. */
  get isFull(): boolean {
    return this.#taken >= this.#maxTaken;
  }

  /**
   * Resolves, when it is this start's turn, with a function that gives the slot back. Rejects with the signal's reason when it
   * aborts first.
   */
  take(start: Start): Promise<() => void> {
    const { signal } = start;
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      const leave = (): void => {
        this.#waiting.delete(waiting);
        reject(signal.reason);
      };
      const waiting: WaitingStart = {
        start,
        begin: () => {
          signal.removeEventListener("abort", leave);
          resolve(this.#hold(start));
        },
      };
      signal.addEventListener("abort", leave, { once: true });
      this.#waiting.add(waiting);
      this.#next();
    });
  }

  #hold({ processorMs }: Start): () => void {
    const { clock, maxHoldMs, lookMs } = this.#options;
    const until = clock.now() + maxHoldMs;
    this.#taken++;
    let usedMs = 0;
    let isHeld = true;
    const release = (): void => {
      if (!isHeld) return;
      isHeld = false;
      stop();
      this.#taken--;
      this.#next();
    };
    const look = (): void => {
      const nowMs = processorMs() ?? usedMs;
      const isBusy = nowMs - usedMs >= lookMs * minShare;
      usedMs = nowMs;
      if (!isBusy || clock.now() >= until) return release();
      stop = clock.timer(lookMs, look);
    };
    let stop = clock.timer(lookMs, look);
    return release;
  }

  #next(): void {
    while (this.#taken < this.#maxTaken && this.#waiting.size > 0) {
      const all = [...this.#waiting];
      const next = all.find(({ start }) => start.isUrgent()) ?? all[0];
      if (next === undefined) return;
      this.#waiting.delete(next);
      next.begin();
    }
  }
}
