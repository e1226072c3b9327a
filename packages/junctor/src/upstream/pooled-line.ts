import type { Client } from "@junctor/client";
import type { Clock } from "@junctor/core/async";
import { type Audience, describeAudience } from "./audience.ts";
import type { Health } from "./health.ts";
import { KnownLists, type Listed } from "./known-lists.ts";
import type { CreateLine } from "./line-factory.ts";
import type { Line } from "./line.ts";
import { ListKeeper, type ListKind } from "./list-keeper.ts";
import { Watches } from "./watches.ts";

/** A line of the pool, and what the server lists on it. */
export interface PooledLine {
  readonly audience: Audience;
  /** Why there is such a line, for people. */
  readonly reason: string;
  readonly line: Line;
  readonly lists: KnownLists;
  /** Keeps the lists up to date. */
  readonly keeper: ListKeeper;
  /** The resources that are watched on it. */
  watches: Watches;
  /** The client while the line is up, and the era it speaks. */
  client: Client | undefined;
  era: "modern" | "legacy" | undefined;
  /** The sessions that used it and are not over: they hear its announcements. */
  readonly sessions: Set<object>;
  /** Whether a resource is watched for its callers on the line for everyone, because it cannot be on this one. */
  watchesElsewhere: boolean;
  /** Calls and watches that use it. */
  inUse: number;
  usedAt: number;
  /** It is closed when it is given back. */
  isEnding: boolean;
}

/** A pool tells this of its lines. */
export interface LineNews {
  readonly onListed: (pooled: PooledLine, changed: readonly ListKind[]) => void;
  readonly onResource: (pooled: PooledLine, uri: string) => void;
  readonly onUp: (pooled: PooledLine, client: Client) => void;
  readonly onHealth: (pooled: PooledLine, health: Health, cause: unknown) => void;
}

interface PooledLineOptions extends LineNews {
  /** Whether it is the line for everyone, which is always kept up. */
  readonly isEveryone: boolean;
  /** Whether the server is listed on it. */
  readonly lists: boolean;
  /** The lists that are known from before. */
  readonly known: Listed | undefined;
  /** The lists on the line for everyone. */
  readonly twin: (() => Listed) | undefined;
  readonly clock: Clock;
  readonly createLine: CreateLine;
  /** Whether the line came up in vain, because it does not speak the era it was opened for. */
  readonly isInVain: (pooled: PooledLine) => boolean;
  readonly onInVain: (pooled: PooledLine) => void;
}

/** How long changes are waited for that come with the first. */
const gatherMs = 50;
/** How long the first list on a line of a caller's own is waited for; after that the list for everyone is shown. */
export const ownListMs = 2000;

/** A line for an audience that is not started yet. */
export function createPooledLine(audience: Audience, options: PooledLineOptions): PooledLine {
  const { isEveryone, known, clock, createLine } = options;
  const openedAt = clock.now();
  const lists = new KnownLists({ remembered: known, twin: options.twin });
  const keeper = new ListKeeper({
    clock,
    lists,
    gatherMs,
    onListed: (changed, isFirst) => {
      // A caller waits for the first list on its own line, and has seen no other.
      const isAwaited = isFirst && !isEveryone && clock.now() - openedAt < ownListMs;
      options.onListed(pooled, isAwaited ? [] : changed);
    },
    onResource: (uri) => options.onResource(pooled, uri),
  });
  const line = createLine(audience, {
    keepsAlive: isEveryone,
    onClient: (client) => {
      pooled.client = client;
    },
    onUp: (client) => {
      if (options.isInVain(pooled)) return options.onInVain(pooled);
      if (options.lists) void keeper.begin(client);
      pooled.watches.renew(client);
      options.onUp(pooled, client);
    },
    onHealth: (health, cause) => {
      pooled.era = health.kind === "up" ? health.agreement.mode.kind : undefined;
      if (health.kind !== "up") keeper.end();
      // A caller that watches something hears of it again without having to call first.
      if (health.kind === "down" && pooled.watches.size > 0) setImmediate(() => line.start());
      options.onHealth(pooled, health, cause);
    },
  });
  const pooled: PooledLine = {
    audience,
    reason: describeAudience(audience, isEveryone),
    line,
    lists,
    keeper,
    watches: new Watches(),
    client: undefined,
    era: undefined,
    sessions: new Set(),
    watchesElsewhere: false,
    inUse: 0,
    usedAt: openedAt,
    isEnding: false,
  };
  pooled.watches.onMissed = (uri) => options.onResource(pooled, uri);
  return pooled;
}
