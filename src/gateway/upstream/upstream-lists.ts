import { type Clock, settlesWithin } from "../../async/clock.ts";
import { createDeferred } from "../../async/deferred.ts";
import type { Client } from "../../client/client.ts";
import type { ListPart } from "../../tools/fit/list-fault.ts";
import { type CreateLine, toCapabilities } from "./line-factory.ts";
import { type Listed, ListKeeper, type ListKind } from "./list-keeper.ts";
import { type Variant, Variants } from "./variants.ts";

export interface UpstreamListsOptions {
  readonly clock: Clock;
  readonly createLine: CreateLine;
  /** What is known from before. */
  readonly known: Listed | undefined;
  /** Told that lists are known here, and which of them are news to callers. */
  readonly onListed: (changed: readonly ListKind[]) => void;
  readonly onResource: (uri: string) => void;
}

/** How long changes are waited for that come with the first. */
const gatherMs = 50;

/** How long callers are not told of a change because it is not known yet what it means for all of them. */
const maxHoldMs = 2000;

/** Lists older than this are renewed when somebody looks, unless the server said that they keep longer. */
const staleMs = 60_000;

/**
 * What one server lists: to everybody, and to callers of a kind, because legacy servers show more to those who can be asked.
 * Each kind has a line of its own, on which the same is declared.
 */
export class UpstreamLists implements AsyncDisposable {
  readonly variants: Variants;
  readonly #options: UpstreamListsOptions;
  readonly #common: ListKeeper;

  constructor(options: UpstreamListsOptions) {
    const { clock, onResource, known } = options;
    this.#options = options;
    this.variants = new Variants({ create: (key) => this.#createVariant(key), clock });
    this.#common = new ListKeeper({
      clock,
      gatherMs,
      known,
      onResource,
      onListed: (changed) => void this.#listedToAll(changed),
    });
  }

  /** Whether anything is known of it. */
  get isListed(): boolean {
    return this.#common.isListed;
  }

  /** Settles when a list came for the first time since the start, or could not be had; undefined when that is so. */
  fresh(part: ListPart): Promise<void> | undefined {
    return this.#common.fresh(part);
  }

  /** The same, but also undefined when the list is known from before. */
  first(part: ListPart): Promise<void> | undefined {
    return this.#common.first(part);
  }

  /** Whether its tools were listed since it was started, and nothing is being listed now. */
  get isSettled(): boolean {
    return this.#common.isSettled;
  }

  /** What it lists for callers of a kind; for one that was not seen yet, what it lists for everybody. */
  listedFor(key: string): Listed {
    const own = key === "" ? undefined : this.variants.find(key)?.lists;
    return own?.isListed === true ? own.listed : this.#common.listed;
  }

  /** The server came up. Resolves when it is listed, for better or worse. */
  begin(client: Client): Promise<void> {
    return this.#common.begin(client);
  }

  end(): void {
    this.#common.end();
  }

  /** Somebody looks: old lists are renewed in the background. A promise means that something is not known and soon will be. */
  looked(key: string): Promise<void> | undefined {
    if (key === "") return refresh(this.#common);
    const { variant, release } = this.variants.use(key);
    release();
    if (variant.lists.isListed && !variant.isOutdated) return refresh(variant.lists);
    variant.line.start();
    this.#waitOnce(variant);
    return variant.listed.promise;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.variants[Symbol.asyncDispose]();
  }

  /** A server that hangs in its lists holds its callers up once, and not each time they look. */
  #waitOnce(variant: Variant): void {
    if (variant.isWaitedFor) return;
    variant.isWaitedFor = true;
    const stop = this.#options.clock.timer(maxHoldMs, variant.listed.resolve);
    void variant.listed.promise.then(stop);
  }

  /** Whoever is told of a change looks at once, so every kind of caller must find what is new by then. */
  async #listedToAll(changed: readonly ListKind[]): Promise<void> {
    const { clock, onListed } = this.#options;
    const variants = changed.length === 0 ? [] : this.variants.all;
    for (const variant of variants.filter(({ line }) => line.client === undefined)) {
      variant.isOutdated = true;
      variant.listed = createDeferred();
      variant.isWaitedFor = false;
    }
    if (variants.length > 0) {
      const refreshed = Promise.all(variants.map(({ lists }) => lists.refresh(changed)));
      await settlesWithin(refreshed, maxHoldMs, clock);
    }
    onListed(changed);
  }

  #createVariant(key: string): Variant {
    const { clock, createLine, onListed } = this.#options;
    const lists = new ListKeeper({
      clock,
      gatherMs,
      // Changes of resources are heard of on the line everybody shares.
      onResource: () => {},
      // What is listed for the first time is news to nobody who has seen something else.
      onListed: (changed) => onListed(variant.isOutdated ? [] : changed),
    });
    const line = createLine(toCapabilities(key), {
      keepsAlive: false,
      onUp: (client) =>
        void lists.begin(client).then(() => {
          variant.isOutdated = false;
          variant.listed.resolve();
        }),
      onHealth: (health) => {
        if (health.kind !== "up") lists.end();
        if (health.kind === "down" || health.kind === "stopped") variant.listed.resolve();
      },
    });
    const variant: Variant = { line, lists, isOutdated: true, listed: createDeferred(), isWaitedFor: false };
    return variant;
  }
}

function refresh(lists: ListKeeper): undefined {
  lists.refreshAfter(Math.max(staleMs, lists.listed.hints.ttlMs));
  return undefined;
}
