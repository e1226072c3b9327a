import type { Clock } from "../async/clock.ts";

/** How many connections a worker may be ahead of another. */
const maxLead = 2;

/** How long workers that are ahead wait for one that does not take its connection. */
const patienceMs = 100;

interface Hand {
  readonly worker: object;
  readonly give: () => void;
}

/**
 * Keeps the numbers of connections of workers even. Node gives a connection to the first worker that has taken its last one. So of
 * many that come at once, the workers that are quicker at that moment would get more, and keep them for as long as they are used. Here
 * a worker that is ahead gets its next connection when those that are slower have taken theirs. One that is stopped is waited for
 * once, and not again until it takes a connection.
 */
export class Dealer {
  readonly #clock: Clock;
  readonly #given = new Map<object, number>();
  /** The workers that were given a connection and have not taken it yet. The others wait for them. */
  readonly #taking = new Set<object>();
  #held: readonly Hand[] = [];
  #stopTimer = (): void => {};

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Calls `give` when it is the worker's turn: at once, unless it is ahead. A worker has taken what it was given before. */
  deal(worker: object, give: () => void): void {
    // One that is new, or was stopped, does not have to catch up with all that the others were given without it.
    const most = Math.max(0, ...this.#given.values());
    this.#given.set(worker, Math.max(this.#given.get(worker) ?? 0, most - maxLead));
    this.#taking.delete(worker);
    // Before those that may have waited for it.
    this.#held = [{ worker, give }, ...this.#held];
    this.#giveAll();
  }

  /** The worker took what it was given, and there is no more for it. */
  taken(worker: object): void {
    this.#taking.delete(worker);
    this.#giveAll();
  }

  /** The worker is gone. It is given nothing that was held for it. */
  leave(worker: object): void {
    this.#given.delete(worker);
    this.#held = this.#held.filter((hand) => hand.worker !== worker);
    this.taken(worker);
  }

  #giveAll(): void {
    for (;;) {
      const next = this.#held.find(({ worker }) => this.#leadOf(worker) < maxLead);
      if (next === undefined) break;
      this.#held = this.#held.filter((hand) => hand !== next);
      this.#given.set(next.worker, (this.#given.get(next.worker) ?? 0) + 1);
      this.#taking.add(next.worker);
      next.give();
    }
    this.#stopTimer();
    if (this.#held.length === 0) return;
    this.#stopTimer = this.#clock.timer(patienceMs, () => {
      this.#taking.clear();
      this.#giveAll();
    });
  }

  #leadOf(worker: object): number {
    const slower = [...this.#taking].map((other) => this.#given.get(other) ?? 0);
    return (this.#given.get(worker) ?? 0) - Math.min(Infinity, ...slower);
  }
}
