import type { Clock } from "../../async/clock.ts";
import type { Deferred } from "../../async/deferred.ts";
import type { Line } from "./line.ts";
import type { ListKeeper } from "./list-keeper.ts";

/** A line on which something is declared on behalf of its callers, and what the server lists on it. */
export interface Variant {
  readonly line: Line;
  readonly lists: ListKeeper;
  /** Never listed, or the server listed something else to everybody since. */
  isOutdated: boolean;
  /** Settles when it is listed again, or that failed. */
  listed: Deferred<void>;
  /** Whether somebody waits for that, or did in vain. */
  isWaitedFor: boolean;
}

interface Slot extends Variant {
  inFlight: number;
  stopTimer: () => void;
}

export interface VariantsOptions {
  readonly create: (key: string) => Variant;
  readonly clock: Clock;
  /** Most kinds of callers at once; those that were not seen for longest are forgotten first. */
  readonly maxVariants?: number;
  /** A line nobody used for so long rests; what it listed stays known. */
  readonly idleMs?: number;
}

/** The lines of one server by what is declared on them, which a legacy server wants to know once and for all. */
export class Variants implements AsyncDisposable {
  readonly #options: Required<VariantsOptions>;
  readonly #slots = new Map<string, Slot>();
  /** What is over and not quite closed. */
  readonly #closing = new Set<Promise<void>>();
  #isClosed = false;

  constructor(options: VariantsOptions) {
    this.#options = { maxVariants: 8, idleMs: 5 * 60_000, ...options };
  }

  /** The variant of a key, if there is one. */
  find(key: string): Variant | undefined {
    return this.#slots.get(key);
  }

  /** Every variant there is. */
  get all(): readonly Variant[] {
    return [...this.#slots.values()];
  }

  /** The variant of a key; it is kept up until the returned function is called, and a while longer. */
  use(key: string): { readonly variant: Variant; readonly release: () => void } {
    const slot = this.#slots.get(key) ?? this.#add(key);
    // Seen last, forgotten last.
    if (this.#slots.delete(key)) this.#slots.set(key, slot);
    slot.stopTimer();
    slot.inFlight++;
    let isUsed = true;
    const release = (): void => {
      if (!isUsed) return;
      isUsed = false;
      if (--slot.inFlight === 0 && this.#slots.get(key) === slot) this.#restLater(slot);
    };
    return { variant: slot, release };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    for (const [key, slot] of this.#slots) this.#close(key, slot);
    await Promise.all(this.#closing);
  }

  #add(key: string): Slot {
    const { create, maxVariants } = this.#options;
    for (const [other, slot] of this.#slots) {
      if (this.#slots.size < maxVariants) break;
      if (slot.inFlight > 0) continue;
      this.#close(other, slot);
    }
    const slot: Slot = Object.assign(create(key), { inFlight: 0, stopTimer: () => {} });
    this.#slots.set(key, slot);
    // Whoever comes too late gets one that is over.
    if (this.#isClosed) this.#close(key, slot);
    return slot;
  }

  #restLater(slot: Slot): void {
    const { clock, idleMs } = this.#options;
    slot.stopTimer = clock.timer(idleMs, () => void slot.line.rest());
  }

  #close(key: string, slot: Slot): void {
    this.#slots.delete(key);
    slot.stopTimer();
    const closed: Promise<void> = slot.line[Symbol.asyncDispose]().finally(() =>
      this.#closing.delete(closed),
    );
    this.#closing.add(closed);
  }
}
