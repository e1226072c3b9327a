import { type Clock, waitFor } from "@junctor/core/async";
import type { ListPart } from "@junctor/core/fit";
import type { CallerInfo } from "@junctor/core/provider";
import type { ServerConfig } from "../config/index.ts";
import { FirstLists } from "./first-lists.ts";
import type { Health } from "./health.ts";
import type { Listed } from "./known-lists.ts";
import type { Pool } from "./pool.ts";
import { ownListMs, type PooledConnection } from "./pooled-connection.ts";

interface UpstreamListsOptions {
  readonly config: ServerConfig;
  readonly clock: Clock;
  /** How long after its start the first lists of the server are waited for. */
  readonly firstListMs: number;
  /** Called when a list begins to wait for them. */
  readonly onAwaited: () => void;
  readonly pool: Pool;
}

/** Lists older than this are renewed when a caller looks, unless the server said that they keep longer. */
const staleMs = 60_000;

/** The lists of one server, for everyone and for callers with connections of their own. */
export class UpstreamLists {
  readonly #pool: Pool;
  readonly #clock: Clock;
  readonly #onAwaited: () => void;
  readonly #firstLists: FirstLists;
  /** Until when the first list on a connection is waited for. */
  readonly #waitsUntil = new WeakMap<PooledConnection, number>();

  constructor({ config, clock, firstListMs, onAwaited, pool }: UpstreamListsOptions) {
    this.#pool = pool;
    this.#onAwaited = onAwaited;
    this.#clock = clock;
    const { startTimeoutMs } = config;
    this.#firstLists = new FirstLists({ clock, firstListMs, startTimeoutMs, lists: pool.everyone.lists });
  }

  /** The health of the connection for everyone changed. */
  note(health: Health): void {
    this.#firstLists.note(health);
  }

  listedFor(caller: CallerInfo | undefined): Listed {
    const own = caller === undefined ? undefined : this.#pool.find(caller)?.lists;
    return own?.isListed === true ? own.listed : this.#pool.everyone.lists.listed;
  }

  /** Starts the server, if it is not started. Resolves when it is up and listed, or has failed for the first time. */
  async start(): Promise<void> {
    const { connection } = this.#pool.everyone;
    if (connection.health.kind === "idle") this.#firstLists.begin();
    connection.start();
    await this.#firstLists.all();
  }

  /**
   * A caller looks at a list: a lazy server that was never listed is started, and old lists are renewed in the background.
   * A promise means that the list is not known yet; it settles when it is, or when it was waited for long enough.
   */
  beginListing(caller: CallerInfo, part: ListPart): Promise<unknown> | undefined {
    this.#startLazy();
    const first = this.#firstLists.forList(part);
    if (first === undefined) return this.#beginListingOn(caller, part);
    this.#onAwaited();
    return first.then(() => this.#beginListingOn(caller, part));
  }

  /**
   * A caller names something that may be in a list. A promise means that the list is not known yet; it settles when it is,
   * when the server failed, or when it was waited for as long as for a start.
   */
  untilListed(part: ListPart, signal: AbortSignal): Promise<unknown> | undefined {
    this.#startLazy();
    const wait = this.#firstLists.forCall(part, signal);
    // A server that a call waits for is started before the others.
    if (wait !== undefined) void this.#pool.everyone.connection.whenUp(signal).catch(() => {});
    return wait;
  }

  #startLazy(): void {
    const { connection, lists } = this.#pool.everyone;
    if (connection.health.kind === "idle" && !lists.isListed) void this.start();
  }

  /** The caller's own connection is opened, so that its lists come from where its calls go. */
  #beginListingOn(caller: CallerInfo, part: ListPart): Promise<unknown> | undefined {
    const { everyone } = this.#pool;
    if (everyone.client === undefined) return undefined;
    const pooled = this.#pool.connectionFor(caller);
    if (pooled === everyone || pooled.lists.isListed) return refresh(pooled);
    const until = this.#waitsUntil.get(pooled) ?? this.#clock.now() + ownListMs;
    this.#waitsUntil.set(pooled, until);
    const leftMs = until - this.#clock.now();
    const first = pooled.lists.fresh(part);
    pooled.connection.start();
    if (first === undefined || leftMs <= 0) return undefined;
    const failed = pooled.connection.whenUp(new AbortController().signal).then(
      () => first,
      () => {},
    );
    return waitFor(Promise.race([first, failed]), { ms: leftMs, clock: this.#clock });
  }
}

function refresh({ lists, keeper }: PooledConnection): undefined {
  keeper.refreshAfter(Math.max(staleMs, lists.listed.hints.ttlMs));
  return undefined;
}
