import type { Clock } from "@junctor/core/async";

/** How many connections a worker may be ahead of another. */
const maxLead = 2;

/** How long workers that are ahead wait for one that does not take its connection. */
const patienceMs = 100;

interface Hand {
  readonly worker: object;
  readonly give: () => void;
}

/**
 * Deals out new connections evenly. Node gives the next connection to whichever worker has taken its last one, so when many arrive at
 * once, the quickest workers would get most of them. Here a worker that was given two more than a worker that has yet to take one
 * waits for it, for 0.1 s at most. A stopped worker is waited for once, and again only after it took a connection. Closed
 * connections are not counted.
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

  /** Calls `give` at once, or when slower workers have caught up. Called again for a worker, it means that the worker has taken its last connection. */
  deal(worker: object, give: () => void): void {
    // A worker that is new, or was stopped, starts near the others: it does not get all the connections it missed.
    const most = Math.max(0, ...this.#given.values());
    this.#given.set(worker, Math.max(this.#given.get(worker) ?? 0, most - maxLead));
    this.#taking.delete(worker);
    // First, because the others in the queue may wait for this worker.
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
