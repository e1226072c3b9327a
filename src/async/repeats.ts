import type { Clock } from "./clock.ts";

interface RepeatsOptions {
  readonly clock: Clock;
  /** How long something that was told is not told again; doubled each time. A minute. */
  readonly minMs?: number;
  /** An hour. */
  readonly maxMs?: number;
}

/** Most things remembered at once; beyond that the one that was told longest ago is forgotten. */
const maxKeys = 64;

interface Told {
  /** When it may be told again. */
  dueAt: number;
  pauseMs: number;
  /** How often it happened since it was told. */
  untold: number;
}

/** Decides what of a thing that happens again and again is worth a line in the log: the first time, then ever more rarely. */
export class Repeats {
  readonly #clock: Clock;
  readonly #minMs: number;
  readonly #maxMs: number;
  readonly #told = new Map<string, Told>();

  constructor({ clock, minMs = 60_000, maxMs = 3_600_000 }: RepeatsOptions) {
    this.#clock = clock;
    this.#minMs = minMs;
    this.#maxMs = maxMs;
  }

  /** It happened. Says how often it did since it was last told, if it is to be told now; 1 for the first time. */
  note(key: string): number | undefined {
    const now = this.#clock.now();
    const told = this.#told.get(key);
    const times = (told?.untold ?? 0) + 1;
    if (told !== undefined && now < told.dueAt) {
      told.untold = times;
      return undefined;
    }
    const pauseMs = told === undefined ? this.#minMs : Math.min(this.#maxMs, told.pauseMs * 2);
    this.#told.delete(key);
    this.#told.set(key, { dueAt: now + pauseMs, pauseMs, untold: 0 });
    const [oldest] = this.#told.keys();
    if (this.#told.size > maxKeys && oldest !== undefined) this.#told.delete(oldest);
    return times;
  }
}
