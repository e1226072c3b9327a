import type { Clock } from "./clock.ts";
import { setNewest } from "./set-newest.ts";

interface RepeatsOptions {
  readonly clock: Clock;
  /** Pause after an event was reported; doubled each time. A minute. */
  readonly minMs?: number;
  /** The longest pause. An hour. */
  readonly maxMs?: number;
}

/** Most events remembered at once; beyond that the one that was reported longest ago is forgotten. */
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
