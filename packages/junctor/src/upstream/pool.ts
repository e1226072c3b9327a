import type { Client } from "@junctor/client";
import { type Clock, ClosingSet, Quota } from "@junctor/core/async";
import { NotFoundError, UpstreamError } from "@junctor/core/errors";
import { type CallerInfo, createCallContext, type Notice } from "@junctor/core/provider";
import type { ServerConfig } from "../config/index.ts";
import { type CallerGroup, type CallerGroups, describeGroup } from "./caller-groups.ts";
import type { Connection, Health } from "./connection.ts";
import { ListCache, type Listed, type ListKind } from "./list-cache.ts";
import type { CreateConnection } from "./open-server.ts";

/** A connection of the pool, and what the server lists on it. */
export interface PooledConnection {
  readonly group: CallerGroup;
  /** Why there is such a connection, for people. */
  readonly reason: string;
  readonly connection: Connection;
  readonly lists: ListCache;
  /** The resources that are watched on it. */
  readonly watches: Watches;
  /** The client while the connection is up, and the era it speaks. */
  readonly client: Client | undefined;
  readonly era: "modern" | "legacy" | undefined;
  /** Whether a caller is notified of changes of its lists. The same function each time: changes are grouped by it. */
  readonly isFor: (caller: CallerInfo) => boolean;
  /** The sessions that used it and are not over: they get its announcements. */
  readonly sessions: Set<object>;
  /** Calls and watches that use it. */
  inUse: number;
  usedAt: number;
  /** It is closed when it is given back. */
  isEnding: boolean;
}

/** Something happened on a connection of a server. */
export type UpstreamEvent = { readonly pooled: PooledConnection } & (
  | { readonly kind: "health"; readonly health: Health; readonly cause: unknown }
  | { readonly kind: "listed"; readonly changed: readonly ListKind[] }
);

/** A client lent for one call. Give it back, once. */
export interface Loan {
  readonly client: Client;
  readonly pooled: PooledConnection;
  /** `isSpoiled`: the server may still be at work for this call, and ask something for it. */
  release(isSpoiled?: boolean): void;
}

interface PoolOptions {
  readonly config: ServerConfig;
  /** The part of the config that may change while the server runs. */
  readonly configNow: () => Pick<ServerConfig, "maxConnections">;
  readonly groups: CallerGroups;
  readonly createConnection: CreateConnection;
  readonly clock: Clock;
  /** Called when a call begins to wait for others to end; the returned function is called when it waits no longer. */
  readonly onWaiting: () => () => void;
  /** The lists of the server from before, if they are known. */
  readonly known: Listed | undefined;
  /** The watches on the connection for everyone of a server that this one replaces. */
  readonly watches: Watches | undefined;
  readonly report: (event: UpstreamEvent) => void;
}

/** How long a conversation may take to announce a change after another one did. */
const relistMs = 500;
/** How long a server that did not know the legacy era is not asked for it again. */
const retryLegacyMs = 10 * 60_000;
/** How long the first list on a connection of a caller's own is waited for; after that the list for everyone is shown. */
export const ownListMs = 2000;

/**
 * The connections to one server, by groups of callers. One is for everyone and always kept up; the others are opened when a
 * caller of their group comes. At the limit those that are idle are closed; when none is, calls wait their turn.
 *
 * It has many members because it decides all of one question: which connection a caller's request goes to, and when.
 */
export class Pool implements AsyncDisposable {
  readonly everyone: PooledConnection;
  readonly #options: PoolOptions;
  readonly #own: OwnConnections;
  readonly #queue: ConnectionQueue<CallerGroup, PooledConnection>;
  readonly #timers = new Set<() => void>();
  #modernOnlyUntil = 0;
  #isClosed = false;

  constructor(options: PoolOptions) {
    this.#options = options;
    const { config, configNow, groups, clock, onWaiting } = options;
    const create = (group: CallerGroup): PooledConnection => this.#create(group);
    this.#own = new OwnConnections({ config, configNow, clock, create });
    this.#queue = new ConnectionQueue(config.name, clock, onWaiting);
    this.everyone = this.#create(groups.everyone);
  }

  /** Every connection there is, that for everyone first. */
  get all(): readonly PooledConnection[] {
    return [this.everyone, ...this.#own.all];
  }

  /** The connection a caller uses, if there is one now. */
  find(caller: CallerInfo): PooledConnection | undefined {
    const group = this.#groupOf(caller);
    return group === this.everyone.group ? this.everyone : this.#own.find(group);
  }

  /** The connection for a caller's lists; it is opened if there is none and there may be one more. */
  connectionFor(caller: CallerInfo): PooledConnection {
    if (this.#isExclusive) return this.everyone;
    const pooled = this.find(caller) ?? this.#open(this.#groupOf(caller)) ?? this.everyone;
    if (caller.session !== undefined) pooled.sessions.add(caller.session);
    return pooled;
  }

  /** Lends the connection of a caller's lists for longer than a call, such as a watch. */
  async lendListed(caller: CallerInfo, signal: AbortSignal): Promise<Loan> {
    if (!this.#isExclusive) return this.lend(caller, signal);
    this.everyone.inUse++;
    return this.#hand(this.everyone, signal);
  }

  /** Lends a connection for one call of a caller. Rejects when none is free in time. */
  async lend(caller: CallerInfo, signal: AbortSignal): Promise<Loan> {
    if (this.#isClosed) throw stopped(this.#options.config.name);
    if (!this.#options.groups.hasOwners) await this.everyone.connection.whenUp(signal);
    const group = this.#groupOf(caller);
    const pooled = this.#take(group) ?? (await this.#queue.wait(group, signal, group.holder));
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

  #groupOf(caller: CallerInfo): CallerGroup {
    const { groups, clock } = this.#options;
    if (groups.isOne) return groups.everyone;
    const { health } = this.everyone.connection;
    const isModernOnly = clock.now() < this.#modernOnlyUntil;
    const eras = health.kind === "up" ? { spoken: health.agreement.mode.kind, isModernOnly } : undefined;
    return groups.of(caller, eras);
  }

  /** A connection for a group that is not started yet. */
  #create(group: CallerGroup): PooledConnection {
    const { createConnection, clock, known, watches, groups, report } = this.#options;
    const isEveryone = group === groups.everyone;
    const openedAt = clock.now();
    const lists = new ListCache({
      clock,
      remembered: isEveryone ? known : undefined,
      twin: isEveryone ? undefined : () => this.everyone.lists.listed,
      report: (changed, isFirst) => {
        // A caller waits for the first list on its own connection, and has seen no other.
        const isAwaited = isFirst && !isEveryone && clock.now() - openedAt < ownListMs;
        report({ kind: "listed", changed: isAwaited ? [] : changed, pooled });
        if (isEveryone && changed.length > 0) this.#refreshOthers(changed);
      },
    });
    const connection = createConnection(group, {
      keepsAlive: isEveryone,
      report: (health, cause) => this.#note(pooled, health, cause),
    });
    const pooled: PooledConnection = {
      group,
      reason: describeGroup(group, isEveryone),
      connection,
      lists,
      watches: (isEveryone ? watches : undefined) ?? new Watches(),
      get client() {
        return connection.client;
      },
      get era() {
        return eraOf(connection);
      },
      // Callers get the changes of the connection for everyone where their own lists nothing.
      isFor: (caller) => {
        const own = this.find(caller);
        return own === pooled || (isEveryone && own?.lists.isListed !== true);
      },
      sessions: new Set(),
      inUse: 0,
      usedAt: openedAt,
      isEnding: false,
    };
    return pooled;
  }

  /** The health of a connection changed: its lists and its watches follow. */
  #note(pooled: PooledConnection, health: Health, cause: unknown): void {
    const { connection, lists, watches } = pooled;
    const { client } = connection;
    lists.noteHealth(health);
    this.#options.report({ kind: "health", health, cause, pooled });
    // A watch goes on without its caller having to call first.
    if (health.kind === "down" && watches.size > 0) setImmediate(() => connection.start());
    if (health.kind !== "up" || client === undefined) return;
    if (this.#isTrial(pooled) && pooled.era === "modern") return this.#giveUpLegacy(pooled);
    if (!this.#isExclusive || pooled === this.everyone) void lists.begin(client);
    watches.renew(client);
  }

  /**
   * Not every conversation is notified of changes. A connection that has not listed again by itself, soon after another connection did, is
   * made to.
   */
  #refreshOthers(changed: readonly ListKind[]): void {
    const { clock, groups } = this.#options;
    const since = clock.now() - relistMs;
    const shared = this.#own.all;
    if (groups.hasOwners || shared.length === 0) return;
    const stop = clock.timer(relistMs, () => {
      this.#timers.delete(stop);
      for (const { lists } of shared) void lists.refreshSince(changed, since);
    });
    this.#timers.add(stop);
  }

  /** A connection for one more call, which counts as in use from now on. */
  #take(group: CallerGroup): PooledConnection | undefined {
    const isEveryone = group === this.everyone.group;
    const pooled = isEveryone ? this.everyone : (this.#own.find(group) ?? this.#open(group));
    if (pooled !== undefined) pooled.inUse++;
    return pooled;
  }

  #open(group: CallerGroup): PooledConnection | undefined {
    return this.#isClosed ? undefined : this.#own.open(group);
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
    this.#queue.serve((group) => this.#take(group));
  }

  /** Whether the connection is there to find out if a modern server over HTTP knows the legacy era too. */
  #isTrial({ group }: PooledConnection): boolean {
    const { config, groups } = this.#options;
    const isOverHttp = config.launch.kind === "http" && !groups.hasOwners;
    return isOverHttp && group.era === "legacy" && this.everyone.era === "modern";
  }

  #giveUpLegacy(pooled: PooledConnection): void {
    this.#modernOnlyUntil = this.#options.clock.now() + retryLegacyMs;
    this.#own.end(pooled);
  }
}

function eraOf({ health }: Connection): PooledConnection["era"] {
  return health.kind === "up" ? health.agreement.mode.kind : undefined;
}

function stopped(server: string): UpstreamError {
  const text = `${server} was stopped or removed, or the gateway is shutting down; the call was not sent.`;
  return new UpstreamError("unavailable", text, { server, delivery: "not_sent" });
}

interface OwnConnectionsOptions extends Pick<PoolOptions, "config" | "configNow"> {
  readonly clock: Clock;
  readonly create: (group: CallerGroup) => PooledConnection;
}

/** The most connections over HTTP besides that for everyone: each is a few kilobytes here and a session there. */
const maxHttpConnections = 256;
/** Connections that were not used for this long, and that no session needs, are closed. */
const idleMs = 5 * 60_000;

/** The connections to one server besides that for everyone. At their limit one that is idle makes room for a new one. */
export class OwnConnections implements AsyncDisposable {
  readonly #options: OwnConnectionsOptions;
  readonly #connections = new Set<PooledConnection>();
  readonly #quota: Quota<CallerGroup["holder"]>;
  readonly #closing = new ClosingSet();
  #stopSweep: (() => void) | undefined;

  constructor(options: OwnConnectionsOptions) {
    this.#options = options;
    this.#quota = new Quota({ what: "connections", total: () => this.#limits.most });
  }

  /** The largest number of connections, and whether a connection serves one call at a time. */
  get #limits(): { readonly most: number; readonly isExclusive: boolean } {
    const { config, configNow } = this.#options;
    const { launch, sharing, instances } = config;
    const least = launch.kind === "http" ? maxHttpConnections : instances;
    return { most: Math.max(configNow().maxConnections, least), isExclusive: sharing === "exclusive" };
  }

  get all(): readonly PooledConnection[] {
    return [...this.#connections];
  }

  /** A connection that is up, if there is one; of several the one used last: its process may remember the caller. */
  find(group: CallerGroup): PooledConnection | undefined {
    let found: PooledConnection | undefined;
    for (const pooled of this.#connections) {
      const isBusy = this.#limits.isExclusive && pooled.inUse > 0;
      if (pooled.group !== group || pooled.isEnding || isBusy) continue;
      if (found === undefined || isBetter(pooled, found)) found = pooled;
    }
    return found;
  }

  /** A new connection for a group; undefined when all of them are busy, or its owner has its share of them. */
  open(group: CallerGroup): PooledConnection | undefined {
    const busy = this.all.filter(({ group: { owner }, inUse }) => owner === group.owner && inUse > 0);
    // Where calls have connections to themselves, one owner must not take all of them: a call may wait for a person.
    const { most, isExclusive } = this.#limits;
    const limit = most - (isExclusive ? Math.floor(most / 4) : 0);
    const { holder } = group;
    if (busy.length >= limit || (this.#quota.refusal(holder) !== undefined && !this.#evict(holder)))
      return undefined;
    const pooled = this.#options.create(group);
    this.#connections.add(pooled);
    this.#quota.add(holder);
    this.#sweepLater();
    return pooled;
  }

  /** A session is over: the connections that only it used are closed, at once or when their calls end. */
  sessionEnded(session: object): void {
    for (const pooled of this.#connections)
      if (pooled.sessions.delete(session) && pooled.group.owner === session) this.end(pooled);
  }

  /** Closes a connection when no call uses it any more; it is given to no other call. */
  end(pooled: PooledConnection): void {
    pooled.isEnding = true;
    if (pooled.inUse > 0 || !this.#connections.delete(pooled)) return;
    this.#quota.give(pooled.group.holder);
    void this.#closing.close(pooled.connection);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopSweep?.();
    for (const { connection } of this.#connections) void this.#closing.close(connection);
    this.#connections.clear();
    await this.#closing[Symbol.asyncDispose]();
  }

  /** Closes an idle connection of the holder that has most, the oldest of them; never one of a holder that has fewer. */
  #evict(holder: CallerGroup["holder"]): boolean {
    const heldBy = ({ group }: PooledConnection): number => this.#quota.heldBy(group.holder);
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

/** A call that waits for a connection. */
interface WaitingCall<Need, Connection> {
  readonly need: Need;
  readonly take: (connection: Connection) => void;
  readonly refuse: (error: Error) => void;
}

const maxWaiting = 1000;
/** How long a call waits for a connection. */
const maxWaitMs = 60_000;

/** Calls that wait because every connection of a server that they could use is busy, in the order they came. */
export class ConnectionQueue<Need, Connection> {
  readonly #server: string;
  readonly #clock: Clock;
  readonly #waiting = new Set<WaitingCall<Need, Connection>>();
  readonly #quota = new Quota({ what: "calls waiting", total: maxWaiting });

  readonly #onWaiting: () => () => void;

  /** `onWaiting` is called when a call begins to wait; the returned function is called when the call waits no longer. */
  constructor(server: string, clock: Clock, onWaiting: () => () => void) {
    this.#server = server;
    this.#clock = clock;
    this.#onWaiting = onWaiting;
  }

  /**
   * Resolves with a connection when it is this call's turn. Rejects with an `UpstreamError` when there is none in time, or when its
   * holder has its share of the waiting calls.
   */
  wait(need: Need, signal: AbortSignal, holder: unknown): Promise<Connection> {
    if (this.#quota.refusal(holder) !== undefined)
      return Promise.reject(this.#busy(`has more calls waiting than it may (${maxWaiting} for all callers)`));
    this.#quota.add(holder);
    return new Promise((resolve, reject) => {
      const doneWaiting = this.#onWaiting();
      const end = (): void => {
        doneWaiting();
        this.#quota.give(holder);
        stopTimer();
        signal.removeEventListener("abort", giveUp);
        this.#waiting.delete(waiting);
      };
      const waiting: WaitingCall<Need, Connection> = {
        need,
        take: (connection) => {
          end();
          resolve(connection);
        },
        refuse: (error) => {
          end();
          reject(error);
        },
      };
      const giveUp = (): void => waiting.refuse(signal.reason as Error);
      const late = `is busy with other calls, and none ended within ${maxWaitMs} ms`;
      const stopTimer = this.#clock.timer(maxWaitMs, () => waiting.refuse(this.#busy(late)));
      this.#waiting.add(waiting);
      signal.addEventListener("abort", giveUp, { once: true });
      if (signal.aborted) giveUp();
    });
  }

  /** Gives a connection that became free to the first call that can use it, in the same moment: no later call comes before it. */
  serve(connectionFor: (need: Need) => Connection | undefined): void {
    for (const waiting of this.#waiting) {
      const connection = connectionFor(waiting.need);
      if (connection !== undefined) waiting.take(connection);
    }
  }

  refuseAll(error: Error): void {
    for (const { refuse } of this.#waiting) refuse(error);
  }

  #busy(why: string): UpstreamError {
    const text = `${this.#server} ${why}; this one was not sent.`;
    return new UpstreamError("busy", text, { server: this.#server, delivery: "not_sent" });
  }
}

type Listener = (notice: Notice) => void;

/** A resource that is watched. */
interface Watched {
  readonly listeners: Set<Listener>;
  /** The server was restarted and refused the watch. */
  isRefused: boolean;
  /** Resolves with the function that ends the watch on the server; rejects when the server refused. */
  stop: Promise<() => void>;
}

/** The resources that are watched on one connection: asked for once, however many watch, and again when it was restarted. */
export class Watches {
  readonly #watched = new Map<string, Watched>();

  get size(): number {
    return this.#watched.size;
  }

  /** Watches a resource, and what lies below it, until the returned function is called. */
  async add(uri: string, client: Client, listener: Listener = () => {}): Promise<() => void> {
    const entry = this.#watched.get(uri) ?? begin(uri, client);
    if (entry.isRefused) this.#ask(uri, entry, client);
    this.#watched.set(uri, entry);
    // A function of its own for each watch: one listener may watch twice.
    const hear: Listener = (notice) => listener(notice);
    entry.listeners.add(hear);
    const stop = (): void => {
      if (entry.listeners.delete(hear)) this.#leave(uri, entry);
    };
    try {
      await entry.stop;
    } catch (error) {
      stop();
      throw error;
    }
    return stop;
  }

  /** The server was restarted: everything is watched again, and everything may have changed. */
  renew(client: Client): void {
    for (const [uri, entry] of this.#watched) {
      this.#ask(uri, entry, client);
      const missed = (): void => notify(entry, { kind: "updated", uri });
      entry.stop.then(missed, missed);
    }
  }

  #ask(uri: string, entry: Watched, client: Client): void {
    const stop = watch(uri, client, entry);
    entry.isRefused = false;
    entry.stop = stop;
    // A server that no longer has it says so; callers that watch it are notified of a change, and find out.
    stop.catch(() => {
      if (entry.stop === stop) entry.isRefused = true;
    });
  }

  #leave(uri: string, entry: Watched): void {
    if (entry.listeners.size > 0) return;
    if (this.#watched.get(uri) === entry) this.#watched.delete(uri);
    entry.stop.then(
      (stop) => stop(),
      () => {},
    );
  }
}

function begin(uri: string, client: Client): Watched {
  const listeners = new Set<Listener>();
  return { listeners, isRefused: false, stop: watch(uri, client, { listeners }) };
}

async function watch(uri: string, client: Client, entry: Pick<Watched, "listeners">): Promise<() => void> {
  if (client.watch === undefined) throw new NotFoundError("resource", uri);
  const target = { part: "resources", name: uri, ref: undefined } as const;
  return client.watch(target, createCallContext(), (notice) => notify(entry, notice));
}

function notify({ listeners }: Pick<Watched, "listeners">, notice: Notice): void {
  for (const listener of listeners) listener(notice);
}
