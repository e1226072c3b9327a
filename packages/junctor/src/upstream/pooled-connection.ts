import type { Client } from "@junctor/client";
import type { Clock } from "@junctor/core/async";
import type { CallerInfo } from "@junctor/core/provider";
import { type Audience, describeAudience } from "./audience.ts";
import type { CreateConnection } from "./connection-factory.ts";
import type { Connection } from "./connection.ts";
import type { Health } from "./health.ts";
import { KnownLists, type Listed } from "./known-lists.ts";
import { ListKeeper, type ListKind } from "./list-keeper.ts";
import { Watches } from "./watches.ts";

/** A connection of the pool, and what the server lists on it. */
export interface PooledConnection {
  readonly audience: Audience;
  /** Why there is such a connection, for people. */
  readonly reason: string;
  readonly connection: Connection;
  readonly lists: KnownLists;
  /** Keeps the lists up to date. */
  readonly keeper: ListKeeper;
  /** The resources that are watched on it. */
  watches: Watches;
  /** The client while the connection is up, and the era it speaks. */
  client: Client | undefined;
  era: "modern" | "legacy" | undefined;
  /** Whether a caller hears of changes of its lists. The same function each time: changes are gathered by it. */
  readonly isFor: (caller: CallerInfo) => boolean;
  /** The sessions that used it and are not over: they hear its announcements. */
  readonly sessions: Set<object>;
  /** Calls and watches that use it. */
  inUse: number;
  usedAt: number;
  /** It is closed when it is given back. */
  isEnding: boolean;
}

/** A pool tells this of its connections. */
export interface ConnectionNews {
  readonly onListed: (pooled: PooledConnection, changed: readonly ListKind[]) => void;
  readonly onUp: (pooled: PooledConnection, client: Client) => void;
  readonly onHealth: (pooled: PooledConnection, health: Health, cause: unknown) => void;
}

interface PooledConnectionOptions extends ConnectionNews {
  /** Whether it is the connection for everyone, which is always kept up. */
  readonly isEveryone: boolean;
  /** Whether the server is listed on it. */
  readonly lists: boolean;
  /** The lists that are known from before. */
  readonly known: Listed | undefined;
  /** The lists on the connection for everyone. */
  readonly twin: (() => Listed) | undefined;
  readonly clock: Clock;
  readonly createConnection: CreateConnection;
  /** Whether the server answered in another era than the one the connection was opened for. */
  readonly isWrongEra: (pooled: PooledConnection) => boolean;
  readonly onWrongEra: (pooled: PooledConnection) => void;
  /** The connection a caller uses, if there is one now. */
  readonly find: (caller: CallerInfo) => PooledConnection | undefined;
}

/** How long changes are waited for that come with the first. */
const gatherMs = 50;
/** How long the first list on a connection of a caller's own is waited for; after that the list for everyone is shown. */
export const ownListMs = 2000;

/** A connection for an audience that is not started yet. */
export function createPooledConnection(
  audience: Audience,
  options: PooledConnectionOptions,
): PooledConnection {
  const { isEveryone, known, clock, createConnection } = options;
  const openedAt = clock.now();
  const lists = new KnownLists({ remembered: known, twin: options.twin });
  const keeper = new ListKeeper({
    clock,
    lists,
    gatherMs,
    onListed: (changed, isFirst) => {
      // A caller waits for the first list on its own connection, and has seen no other.
      const isAwaited = isFirst && !isEveryone && clock.now() - openedAt < ownListMs;
      options.onListed(pooled, isAwaited ? [] : changed);
    },
  });
  const connection = createConnection(audience, {
    keepsAlive: isEveryone,
    onClient: (client) => {
      pooled.client = client;
    },
    onUp: (client) => {
      if (options.isWrongEra(pooled)) return options.onWrongEra(pooled);
      if (options.lists) void keeper.begin(client);
      pooled.watches.renew(client);
      options.onUp(pooled, client);
    },
    onHealth: (health, cause) => {
      pooled.era = health.kind === "up" ? health.agreement.mode.kind : undefined;
      if (health.kind !== "up") keeper.end();
      // A caller that watches something hears of it again without having to call first.
      if (health.kind === "down" && pooled.watches.size > 0) setImmediate(() => connection.start());
      options.onHealth(pooled, health, cause);
    },
  });
  const pooled: PooledConnection = {
    audience,
    reason: describeAudience(audience, isEveryone),
    connection,
    lists,
    keeper,
    watches: new Watches(),
    client: undefined,
    era: undefined,
    // Callers hear of the connection for everyone where their own lists nothing.
    isFor: (caller) => {
      const own = options.find(caller);
      return own === pooled || (isEveryone && own?.lists.isListed !== true);
    },
    sessions: new Set(),
    inUse: 0,
    usedAt: openedAt,
    isEnding: false,
  };
  return pooled;
}
