import type { Client } from "@junctor/client";
import type { Clock } from "@junctor/core/async";
import { UpstreamError } from "@junctor/core/errors";
import type { CallerInfo } from "@junctor/core/provider";
import type { ServerConfig } from "../config/index.ts";
import type { Audience, Audiences } from "./audience.ts";
import type { CreateConnection } from "./connection-factory.ts";
import { ConnectionQueue } from "./connection-queue.ts";
import type { Listed } from "./known-lists.ts";
import type { ListKind } from "./list-keeper.ts";
import { OwnConnections } from "./own-connections.ts";
import { createPooledConnection, type ConnectionNews, type PooledConnection } from "./pooled-connection.ts";

/** A client lent for one call. Give it back, once. */
export interface Loan {
  readonly client: Client;
  readonly pooled: PooledConnection;
  /** `isSpoiled`: the server may still be at work for this call, and ask something for it. */
  release(isSpoiled?: boolean): void;
}

interface PoolOptions extends ConnectionNews {
  readonly config: ServerConfig;
  readonly audiences: Audiences;
  readonly createConnection: CreateConnection;
  readonly clock: Clock;
  /** Called when a call begins to wait for others to end; the returned function is called when it waits no longer. */
  readonly onWaiting: () => () => void;
  /** The lists of the server from before, if they are known. */
  readonly known: Listed | undefined;
}

/** How long a conversation may take to hear of a change that another heard of. */
const relistMs = 500;
/** How long a server that did not know the legacy era is not asked for it again. */
const retryLegacyMs = 10 * 60_000;

/**
 * The connections to one server, by their audiences. One is for everyone and always kept up; the others are opened when a
 * caller of their audience comes. At the limit those that are idle are closed; when none is, calls wait their turn.
 *
 * It has many members because it decides all of one question: which connection a caller's request goes to, and when.
 */
export class Pool implements AsyncDisposable {
  readonly everyone: PooledConnection;
  readonly #options: PoolOptions;
  readonly #own: OwnConnections;
  readonly #queue: ConnectionQueue<Audience, PooledConnection>;
  readonly #timers = new Set<() => void>();
  #modernOnlyUntil = 0;
  #isClosed = false;

  constructor(options: PoolOptions) {
    this.#options = options;
    const { config, audiences, clock, onWaiting } = options;
    this.#own = new OwnConnections({ config, clock, create: (audience) => this.#create(audience) });
    this.#queue = new ConnectionQueue(config.name, clock, onWaiting);
    this.everyone = this.#create(audiences.everyone);
  }

  /** Every connection there is, that for everyone first. */
  get all(): readonly PooledConnection[] {
    return [this.everyone, ...this.#own.all];
  }

  /** The connection a caller uses, if there is one now. */
  find(caller: CallerInfo): PooledConnection | undefined {
    const audience = this.#audienceOf(caller);
    return audience === this.everyone.audience ? this.everyone : this.#own.find(audience);
  }

  /** The connection for a caller's lists; it is opened if there is none and there may be one more. */
  connectionFor(caller: CallerInfo): PooledConnection {
    if (this.#isExclusive) return this.everyone;
    const pooled = this.find(caller) ?? this.#open(this.#audienceOf(caller)) ?? this.everyone;
    if (caller.session !== undefined) pooled.sessions.add(caller.session);
    return pooled;
  }

  /** Lends the connection of a caller's lists for longer than a call, such as a watch. */
  async lendListed(caller: CallerInfo, signal: AbortSignal): Promise<Loan> {
    if (!this.#isExclusive) return this.lend(caller, signal);
    this.everyone.inUse++;
    return this.#hand(this.everyone, signal);
  }

  /** Lends a connection for one call of a caller. Rejects when it cannot be had in time. */
  async lend(caller: CallerInfo, signal: AbortSignal): Promise<Loan> {
    if (this.#isClosed) throw stopped(this.#options.config.name);
    if (!this.#options.audiences.hasOwners) await this.everyone.connection.whenUp(signal);
    const audience = this.#audienceOf(caller);
    const pooled = this.#take(audience) ?? (await this.#queue.wait(audience, signal, audience.holder));
    if (caller.session !== undefined) pooled.sessions.add(caller.session);
    return this.#hand(pooled, signal);
  }

  /** Keeps a connection open, for work that continues after its call, until the returned function is called. */
  keep(pooled: PooledConnection): () => void {
    let isKept = true;
    pooled.inUse++;
    return () => {
      if (isKept) this.#giveBack(pooled);
      isKept = false;
    };
  }

  /** A session is over: the connections that only it used are closed, at once or when their calls end. */
  sessionEnded(session: object): void {
    this.everyone.sessions.delete(session);
    this.#own.sessionEnded(session);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    for (const stop of this.#timers) stop();
    this.#queue.refuseAll(stopped(this.#options.config.name));
    await Promise.all([this.everyone.connection[Symbol.asyncDispose](), this.#own[Symbol.asyncDispose]()]);
  }

  get #isExclusive(): boolean {
    return this.#options.config.sharing === "exclusive";
  }

  #audienceOf(caller: CallerInfo): Audience {
    const { audiences, clock } = this.#options;
    if (audiences.isOne) return audiences.everyone;
    const { health } = this.everyone.connection;
    const isModernOnly = clock.now() < this.#modernOnlyUntil;
    const eras = health.kind === "up" ? { spoken: health.agreement.mode.kind, isModernOnly } : undefined;
    return audiences.of(caller, eras);
  }

  #create(audience: Audience): PooledConnection {
    const { createConnection, clock, known, audiences, onListed, onUp, onHealth } = this.#options;
    const listeners = { onListed, onUp, onHealth };
    const isEveryone = audience === audiences.everyone;
    return createPooledConnection(audience, {
      isEveryone,
      lists: !this.#isExclusive || isEveryone,
      known: isEveryone ? known : undefined,
      twin: isEveryone ? undefined : () => this.everyone.lists.listed,
      clock,
      createConnection,
      ...listeners,
      onListed: (pooled, changed) => {
        listeners.onListed(pooled, changed);
        if (isEveryone && changed.length > 0) this.#refreshOthers(changed);
      },
      isWrongEra: (pooled) => this.#isTrial(pooled) && isModern(pooled),
      onWrongEra: (pooled) => this.#giveUpLegacy(pooled),
      find: (caller) => this.find(caller),
    });
  }

  /** Not every conversation hears of changes. A connection that has not listed again by itself, soon after another connection did, is made to. */
  #refreshOthers(changed: readonly ListKind[]): void {
    const { clock, audiences } = this.#options;
    const since = clock.now() - relistMs;
    const shared = this.#own.all;
    if (audiences.hasOwners || shared.length === 0) return;
    const stop = clock.timer(relistMs, () => {
      this.#timers.delete(stop);
      for (const { keeper } of shared) void keeper.refreshSince(changed, since);
    });
    this.#timers.add(stop);
  }

  /** A connection for one more call, which counts as in use from now on. */
  #take(audience: Audience): PooledConnection | undefined {
    const isEveryone = audience === this.everyone.audience;
    const pooled = isEveryone ? this.everyone : (this.#own.find(audience) ?? this.#open(audience));
    if (pooled !== undefined) pooled.inUse++;
    return pooled;
  }

  #open(audience: Audience): PooledConnection | undefined {
    return this.#isClosed ? undefined : this.#own.open(audience);
  }

  async #hand(pooled: PooledConnection, signal: AbortSignal): Promise<Loan> {
    let isLent = true;
    const release = (isSpoiled = false): void => {
      if (!isLent) return;
      isLent = false;
      // A later question of its server would be asked of the next caller.
      pooled.isEnding ||= isSpoiled && this.#isExclusive;
      this.#giveBack(pooled);
    };
    try {
      const client = pooled.connection.client ?? (await pooled.connection.whenUp(signal));
      if (!pooled.isEnding || !this.#isTrial(pooled)) return { client, pooled, release };
    } catch (error) {
      const { client } = this.everyone.connection;
      if (!this.#isTrial(pooled) || client === undefined || signal.aborted) {
        release();
        throw error;
      }
      this.#giveUpLegacy(pooled);
    }
    // Its callers are served in the modern era, on the connection for everyone.
    release();
    this.everyone.inUse++;
    return this.#hand(this.everyone, signal);
  }

  #giveBack(pooled: PooledConnection): void {
    pooled.inUse--;
    pooled.usedAt = this.#options.clock.now();
    if (pooled.isEnding) this.#own.end(pooled);
    this.#queue.serve((audience) => this.#take(audience));
  }

  /** Whether the connection is there to find out if a modern server over HTTP knows the legacy era too. */
  #isTrial({ audience }: PooledConnection): boolean {
    const { config, audiences } = this.#options;
    const isOverHttp = config.launch.kind === "http" && !audiences.hasOwners;
    return isOverHttp && audience.era === "legacy" && isModern(this.everyone);
  }

  #giveUpLegacy(pooled: PooledConnection): void {
    this.#modernOnlyUntil = this.#options.clock.now() + retryLegacyMs;
    this.#own.end(pooled);
  }
}

function isModern({ connection: { health } }: PooledConnection): boolean {
  return health.kind === "up" && health.agreement.mode.kind === "modern";
}

function stopped(server: string): UpstreamError {
  const text = `${server} was stopped or removed, or the gateway is shutting down; the call was not sent.`;
  return new UpstreamError("unavailable", text, { server, delivery: "not_sent" });
}
