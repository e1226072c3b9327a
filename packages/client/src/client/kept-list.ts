import type { Clock } from "@junctor/core/async";
import type { ListFault } from "@junctor/core/fit";
import type { CacheHints } from "@junctor/core/mcp";
import { Listing } from "@junctor/core/provider";

/** A list as it was fetched, and how long it may be kept. */
export interface Fetched<T extends object> {
  readonly items: readonly T[];
  /** The definitions of it that were mended or left out. */
  readonly faults: readonly ListFault[];
  readonly ttlMs: number;
  /** What the server said about keeping it. */
  readonly hints: CacheHints;
}

/**
 * A list that is fetched when needed and kept while fresh. However many ask at the same time, it is fetched once; what
 * was fetched while a change was announced is handed out but not kept.
 */
export class KeptList<T extends object> {
  readonly #fetch: () => Promise<Fetched<T>>;
  readonly #clock: Clock;
  #kept:
    | {
        readonly listing: Listing<T>;
        readonly faults: readonly ListFault[];
        readonly freshUntil: number;
        readonly generation: number;
      }
    | undefined;
  #underway: Promise<Listing<T>> | undefined;
  #generation = 0;

  constructor(fetch: () => Promise<Fetched<T>>, clock: Clock) {
    this.#fetch = fetch;
    this.#clock = clock;
  }

  /** The list that was fetched last, fresh or not. */
  get last(): Listing<T> | undefined {
    return this.#kept?.listing;
  }

  /** The same, if it is fresh. */
  get fresh(): Listing<T> | undefined {
    return this.#kept !== undefined && this.#clock.now() < this.#kept.freshUntil
      ? this.#kept.listing
      : undefined;
  }

  /** The definitions that were mended in, or left out of, the list that was fetched last. */
  get faults(): readonly ListFault[] {
    return this.#kept?.faults ?? [];
  }

  /** The list, fetched if the kept one is not fresh. */
  get(): Promise<Listing<T>> {
    const { fresh } = this;
    return fresh === undefined ? (this.#underway ??= this.#refresh()) : Promise.resolve(fresh);
  }

  /** It changed: the next to ask fetches it anew. */
  invalidate(): void {
    this.#generation++;
    this.#underway = undefined;
    if (this.#kept !== undefined) this.#kept = { ...this.#kept, freshUntil: 0 };
  }

  async #refresh(): Promise<Listing<T>> {
    const generation = this.#generation;
    try {
      const { items, faults, ttlMs, hints } = await this.#fetch();
      const listing = new Listing(Object.freeze(items), { hints });
      const isCurrent = generation === this.#generation;
      // A slow answer must not replace the answer to a later request.
      if (this.#kept === undefined || generation >= this.#kept.generation) {
        const freshUntil = isCurrent ? this.#clock.now() + ttlMs : 0;
        this.#kept = { listing, faults, freshUntil, generation };
      }
      return listing;
    } finally {
      if (generation === this.#generation) this.#underway = undefined;
    }
  }
}
