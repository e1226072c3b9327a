import type { Clock } from "./clock.ts";
import { setNewest } from "./collections.ts";

/** The most owners remembered. The least recently seen is forgotten first, and has a full burst when seen again. */
const maxOwners = 1024;

/** Lets work through whose cost is time: up to `burstMs` at once, and beyond that no faster than it is paid for. */
export class LeakyBucket {
  readonly #clock: Clock;
  readonly #burstMs: () => number;
  /** When all the work so far is paid for. */
  #paidAt = Number.NEGATIVE_INFINITY;

  /** A burst that may change is a function, called at each charge. */
  constructor(clock: Clock, burstMs: number | (() => number)) {
    this.#clock = clock;
    this.#burstMs = typeof burstMs === "function" ? burstMs : () => burstMs;
  }

  /** Charges for some work. Returns how long to wait until all is paid for; 0 within the burst. */
  charge(costMs: number): number {
    const now = this.#clock.now();
    if (costMs > 0) this.#paidAt = Math.max(this.#paidAt, now - this.#burstMs()) + costMs;
    return Math.max(0, this.#paidAt - now);
  }
}

/** A bucket for each owner. */
export class LeakyBuckets<Owner> {
  readonly #clock: Clock;
  readonly #burstMs: number | (() => number);
  readonly #owners = new Map<Owner, LeakyBucket>();

  constructor(clock: Clock, burstMs: number | (() => number)) {
    this.#clock = clock;
    this.#burstMs = burstMs;
  }

  of(owner: Owner): LeakyBucket {
    const bucket = this.#owners.get(owner) ?? new LeakyBucket(this.#clock, this.#burstMs);
    setNewest(this.#owners, owner, bucket, maxOwners);
    return bucket;
  }
}

interface RepeatsOptions {
  readonly clock: Clock;
  /** Pause after an event was reported; doubled each time. A minute. */
  readonly minMs?: number;
  /** The longest pause. An hour. */
  readonly maxMs?: number;
}

/** The most events remembered at once; beyond that the one that was reported longest ago is forgotten. */
const maxKeys = 64;

interface RepeatedEvent {
  /** When it may be reported again. */
  dueAt: number;
  pauseMs: number;
  /** How often it happened since it was last reported. */
  unreported: number;
  lastAt: number;
}

/** Decides when an event that happens again and again is reported: the first time, then ever more rarely. */
export class Repeats {
  readonly #clock: Clock;
  readonly #minMs: number;
  readonly #maxMs: number;
  readonly #events = new Map<string, RepeatedEvent>();

  constructor({ clock, minMs = 60_000, maxMs = 3_600_000 }: RepeatsOptions) {
    this.#clock = clock;
    this.#minMs = minMs;
    this.#maxMs = maxMs;
  }

  /** Whether an event has not happened yet, or not for as long as the longest pause. */
  isNew(key: string): boolean {
    const event = this.#events.get(key);
    return event === undefined || this.#clock.now() - event.lastAt >= this.#maxMs;
  }

  /** Notes that an event happened. If it should be reported now, returns how often it happened since the last report; 1 for the first time. */
  note(key: string): number | undefined {
    const now = this.#clock.now();
    const event = this.isNew(key) ? undefined : this.#events.get(key);
    const times = (event?.unreported ?? 0) + 1;
    if (event !== undefined && now < event.dueAt) {
      event.unreported = times;
      event.lastAt = now;
      return undefined;
    }
    const pauseMs = event === undefined ? this.#minMs : Math.min(this.#maxMs, event.pauseMs * 2);
    setNewest(this.#events, key, { dueAt: now + pauseMs, pauseMs, unreported: 0, lastAt: now }, maxKeys);
    return times;
  }
}

interface BackoffOptions {
  readonly minMs?: number;
  readonly maxMs?: number;
  /** A number from 0 to 1; injected so that tests can replay. */
  readonly random?: () => number;
}

/** How long to wait before trying again. */
export interface Backoff {
  /** The next delay: twice the last, up to the limit, with half of it left to chance so that many do not come at once. */
  next(): number;
  /**
   * Starts over with short delays. Call it after a while of success: on the first sign of life, it would
   * start a storm of retries.
   */
  reset(): void;
}

export function createBackoff({
  minMs = 250,
  maxMs = 30_000,
  random = Math.random,
}: BackoffOptions = {}): Backoff {
  let step = 0;
  return {
    next: () => {
      const full = Math.min(maxMs, minMs * 2 ** step);
      step = Math.min(step + 1, 30);
      return full / 2 + (full / 2) * random();
    },
    reset: () => {
      step = 0;
    },
  };
}
