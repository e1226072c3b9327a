import { type Clock, ClosingSet, Quota } from "@junctor/core/async";
import type { ServerConfig } from "../config/index.ts";
import type { Audience } from "./audience.ts";
import type { PooledConnection } from "./pooled-connection.ts";

interface OwnConnectionsOptions {
  readonly config: ServerConfig;
  readonly clock: Clock;
  readonly create: (audience: Audience) => PooledConnection;
}

/** Most connections over HTTP besides that for everyone: each is a few kilobytes here and a session there. */
const maxHttpConnections = 256;
/** Lines that were not used for so long, and that no session needs, are closed. */
const idleMs = 5 * 60_000;

/** The connections to one server besides that for everyone. At their limit one that is idle makes room for a new one. */
export class OwnConnections implements AsyncDisposable {
  readonly #options: OwnConnectionsOptions;
  /** Most connections, and whether a connection serves one call at a time. */
  readonly #limits: { readonly most: number; readonly isExclusive: boolean };
  readonly #connections = new Set<PooledConnection>();
  readonly #quota: Quota<Audience["holder"]>;
  readonly #closing = new ClosingSet();
  #stopSweep: (() => void) | undefined;

  constructor(options: OwnConnectionsOptions) {
    const { launch, sharing, maxConnections, instances } = options.config;
    this.#options = options;
    const most = Math.max(maxConnections, launch.kind === "http" ? maxHttpConnections : instances);
    this.#limits = { most, isExclusive: sharing === "exclusive" };
    this.#quota = new Quota({ what: "connections", total: most });
  }

  get all(): readonly PooledConnection[] {
    return [...this.#connections];
  }

  /** One that is up, if there is one; of several the one used last: its process may remember the caller. */
  find(audience: Audience): PooledConnection | undefined {
    let found: PooledConnection | undefined;
    for (const pooled of this.#connections) {
      const isBusy = this.#limits.isExclusive && pooled.inUse > 0;
      if (pooled.audience !== audience || pooled.isEnding || isBusy) continue;
      if (found === undefined || isBetter(pooled, found)) found = pooled;
    }
    return found;
  }

  /** A new connection for an audience; undefined when all of them are busy, or its owner has its share of them. */
  open(audience: Audience): PooledConnection | undefined {
    const busy = this.all.filter(({ audience: { owner }, inUse }) => owner === audience.owner && inUse > 0);
    // Where calls have connections to themselves, one owner must not take all of them: a call may wait for a person.
    const { most, isExclusive } = this.#limits;
    const limit = most - (isExclusive ? Math.floor(most / 4) : 0);
    const { holder } = audience;
    if (busy.length >= limit || (this.#quota.refusal(holder) !== undefined && !this.#evict(holder)))
      return undefined;
    const pooled = this.#options.create(audience);
    this.#connections.add(pooled);
    this.#quota.add(holder);
    this.#sweepLater();
    return pooled;
  }

  /** A session is over: the connections that only it used are closed, at once or when their calls end. */
  sessionEnded(session: object): void {
    for (const pooled of this.#connections)
      if (pooled.sessions.delete(session) && pooled.audience.owner === session) this.end(pooled);
  }

  /** Closes a connection when no call uses it any more; it is given to no other call. */
  end(pooled: PooledConnection): void {
    pooled.isEnding = true;
    if (pooled.inUse > 0 || !this.#connections.delete(pooled)) return;
    this.#quota.give(pooled.audience.holder);
    void this.#closing.close(pooled.connection);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopSweep?.();
    for (const { connection } of this.#connections) void this.#closing.close(connection);
    this.#connections.clear();
    await this.#closing[Symbol.asyncDispose]();
  }

  /** Closes an idle connection of the holder that has most, the oldest of them; never one of a holder that has fewer. */
  #evict(holder: Audience["holder"]): boolean {
    const heldBy = ({ audience }: PooledConnection): number => this.#quota.heldBy(audience.holder);
    const own = this.#quota.heldBy(holder);
    const [first] = this.all
      .filter((each) => each.inUse === 0 && heldBy(each) >= own)
      .toSorted((a, b) => heldBy(b) - heldBy(a) || a.usedAt - b.usedAt);
    if (first === undefined) return false;
    this.end(first);
    return true;
  }

  /** Looks from time to time for connections that are not used. */
  #sweepLater(): void {
    const { clock, config } = this.#options;
    if (this.#connections.size === 0) return;
    this.#stopSweep ??= clock.timer(idleMs / 2, () => {
      this.#stopSweep = undefined;
      for (const pooled of this.#connections) {
        const isIdle = pooled.inUse === 0 && clock.now() - pooled.usedAt >= idleMs;
        // A conversation that a session hears announcements on stays; a process does not.
        const isKept = config.launch.kind === "http" && pooled.sessions.size > 0;
        if (isIdle && !isKept) this.end(pooled);
      }
      this.#sweepLater();
    });
  }
}

function isBetter(one: PooledConnection, other: PooledConnection): boolean {
  const isUp = one.connection.client !== undefined;
  return isUp === (other.connection.client !== undefined) ? one.usedAt > other.usedAt : isUp;
}
