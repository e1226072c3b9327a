import type { Clock } from "../../async/clock.ts";
import type { Client } from "../../client/client.ts";
import { UpstreamError } from "../../errors/upstream-error.ts";
import type { Line } from "./line.ts";

/** A client lent for one call. Give it back, once. */
export interface Lease {
  readonly client: Client;
  readonly line: Line;
  /** `isSpoiled`: the server may still be at work for this call, and ask something for it. */
  release(isSpoiled?: boolean): void;
}

/** A line of a server besides the one everybody shares. */
interface Slot {
  readonly owner: string;
  /** What was declared on it. */
  readonly key: string;
  readonly line: Line;
  inFlight: number;
  /** It is closed when it is given back. */
  isEnding: boolean;
  usedAt: number;
}

/** A call that waits for a line. */
interface Waiting {
  readonly owner: string;
  readonly key: string;
  readonly need: LineNeed;
  readonly take: (slot: Slot) => void;
  readonly refuse: (error: Error) => void;
}

/** What a call needs a line to be. */
export interface LineNeed {
  /** Nobody else may use it meanwhile. */
  readonly isAlone: boolean;
  /** Its owner has no more than one of the kind: who keeps state wants to meet it again. */
  readonly isOnly?: boolean;
  /** Makes another line of the kind; it is started when it is first used. */
  readonly create: () => Line;
}

export interface LinesOptions {
  readonly server: string;
  readonly maxLines: number;
  readonly clock: Clock;
  /** Lines nobody used for so long are closed. */
  readonly idleMs?: number;
  readonly maxWaiting?: number;
  /** How many lines one owner leaves to the others. */
  readonly spare?: number;
  /** How long a call waits for its turn. */
  readonly maxWaitMs?: number;
}

/**
 * The lines of a server that are not shared by all: for callers of one kind, for one caller, or for one call at a time. At
 * the limit those of others that are idle are closed; when none is, calls wait their turn.
 */
export class Lines implements AsyncDisposable {
  readonly #options: Required<LinesOptions>;
  readonly #slots = new Set<Slot>();
  /** In the order they came. */
  readonly #queue = new Set<Waiting>();
  /** What is over and not quite closed. */
  readonly #closing = new Set<Promise<void>>();
  #stopSweep: (() => void) | undefined;
  #isClosed = false;

  constructor(options: LinesOptions) {
    this.#options = { idleMs: 5 * 60_000, maxWaiting: 1000, maxWaitMs: 60_000, spare: 2, ...options };
  }

  get size(): number {
    return this.#slots.size;
  }

  /** Lends a line of this owner and kind. Rejects when it cannot be had in time. */
  async take(owner: string, key: string, need: LineNeed, signal: AbortSignal): Promise<Lease> {
    if (this.#isClosed) throw this.#stopped();
    const slot = this.#slotFor(owner, key, need) ?? (await this.#turn(owner, key, need, signal));
    return this.#lend(slot, signal);
  }

  /** Closes the lines of an owner: at once those nobody uses, the others when they are given back. */
  end(owner: string): void {
    for (const slot of this.#slots) {
      if (slot.owner !== owner) continue;
      if (slot.inFlight === 0) this.#close(slot);
      else slot.isEnding = true;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    this.#stopSweep?.();
    for (const { refuse } of this.#queue) refuse(this.#stopped());
    this.#queue.clear();
    for (const slot of this.#slots) this.#close(slot);
    await Promise.all(this.#closing);
  }

  /** A line for one more call, which counts as underway from now on. */
  #slotFor(owner: string, key: string, { isAlone, isOnly = false, create }: LineNeed): Slot | undefined {
    const slot =
      this.#find(owner, key, isAlone) ??
      (isOnly && this.#has(owner, key) ? undefined : this.#open(owner, key, create));
    if (slot !== undefined) slot.inFlight++;
    return slot;
  }

  /**
   * One that is up, if there is one; of several the one used last: whoever calls one after the other meets the same process,
   * which may remember.
   */
  #find(owner: string, key: string, isAlone: boolean): Slot | undefined {
    let found: Slot | undefined;
    for (const slot of this.#slots) {
      if (slot.owner !== owner || slot.key !== key || slot.isEnding || (isAlone && slot.inFlight > 0))
        continue;
      if (found === undefined || isBetter(slot, found)) found = slot;
    }
    return found;
  }

  #has(owner: string, key: string): boolean {
    return [...this.#slots].some((slot) => slot.owner === owner && slot.key === key && !slot.isEnding);
  }

  #open(owner: string, key: string, create: () => Line): Slot | undefined {
    const { maxLines, spare, clock } = this.#options;
    const own = [...this.#slots].filter((slot) => slot.owner === owner && slot.inFlight > 0);
    // Nobody takes all of them where calls may wait for a person, which takes long.
    const limit = key === "" ? maxLines : Math.max(1, maxLines - spare);
    if (own.length >= limit) return undefined;
    if (this.#slots.size >= maxLines && !this.#evict()) return undefined;
    const slot: Slot = { owner, key, line: create(), inFlight: 0, isEnding: false, usedAt: clock.now() };
    this.#slots.add(slot);
    this.#stopSweep ??= this.#sweepLater();
    return slot;
  }

  #evict(): boolean {
    let oldest: Slot | undefined;
    for (const slot of this.#slots) {
      if (slot.inFlight === 0 && (oldest === undefined || slot.usedAt < oldest.usedAt)) oldest = slot;
    }
    if (oldest !== undefined) this.#close(oldest);
    return oldest !== undefined;
  }

  async #lend(slot: Slot, signal: AbortSignal): Promise<Lease> {
    let isLent = true;
    const release = (isSpoiled = false): void => {
      if (!isLent) return;
      isLent = false;
      // What it asks would be asked of whoever gets the line next.
      slot.isEnding ||= isSpoiled;
      slot.inFlight--;
      slot.usedAt = this.#options.clock.now();
      if (slot.isEnding && slot.inFlight === 0) this.#close(slot);
      this.#serveQueue();
    };
    try {
      return { client: slot.line.client ?? (await slot.line.whenUp(signal)), line: slot.line, release };
    } catch (error) {
      release();
      throw error;
    }
  }

  /** Gives what is free to those who wait for it, in the moment it is free: nobody who comes later is served before. */
  #serveQueue(): void {
    for (const waiting of this.#queue) {
      const slot = this.#slotFor(waiting.owner, waiting.key, waiting.need);
      if (slot === undefined) continue;
      this.#queue.delete(waiting);
      waiting.take(slot);
    }
  }

  #turn(owner: string, key: string, need: LineNeed, signal: AbortSignal): Promise<Slot> {
    const { server, maxWaiting, maxWaitMs, clock } = this.#options;
    if (this.#queue.size >= maxWaiting) {
      const text = `${server} has more calls waiting than it may (${maxWaiting}); this one was not sent.`;
      return Promise.reject(new UpstreamError("busy", server, "not_sent", text));
    }
    return new Promise((resolve, reject) => {
      const waiting: Waiting = {
        owner,
        key,
        need,
        take: (slot) => {
          stopTimer();
          signal.removeEventListener("abort", giveUp);
          resolve(slot);
        },
        refuse: (error) => {
          stopTimer();
          signal.removeEventListener("abort", giveUp);
          reject(error);
        },
      };
      const giveUp = (): void => {
        stopTimer();
        this.#queue.delete(waiting);
        reject(signal.reason);
      };
      const stopTimer = clock.timer(maxWaitMs, () => {
        this.#queue.delete(waiting);
        const text = `${server} is busy with other calls, and none ended within ${maxWaitMs} ms; this one was not sent.`;
        waiting.refuse(new UpstreamError("busy", server, "not_sent", text));
      });
      if (signal.aborted) return giveUp();
      signal.addEventListener("abort", giveUp, { once: true });
      this.#queue.add(waiting);
    });
  }

  #sweepLater(): () => void {
    const { clock, idleMs } = this.#options;
    return clock.timer(idleMs / 2, () => {
      for (const slot of this.#slots) {
        if (slot.inFlight === 0 && clock.now() - slot.usedAt >= idleMs) this.#close(slot);
      }
      this.#stopSweep = this.#slots.size === 0 ? undefined : this.#sweepLater();
    });
  }

  #close(slot: Slot): void {
    this.#slots.delete(slot);
    const closed: Promise<void> = slot.line[Symbol.asyncDispose]().finally(() =>
      this.#closing.delete(closed),
    );
    this.#closing.add(closed);
  }

  #stopped(): UpstreamError {
    const { server } = this.#options;
    const text = `${server} was removed, or the gateway is shutting down; the call was not sent.`;
    return new UpstreamError("unavailable", server, "not_sent", text);
  }
}

function isBetter(one: Slot, other: Slot): boolean {
  const isUp = one.line.client !== undefined;
  return isUp === (other.line.client !== undefined) ? one.usedAt > other.usedAt : isUp;
}
