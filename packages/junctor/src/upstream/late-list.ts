import { type Clock, timedOut, waitFor } from "@junctor/core/async";
import type { Items } from "@junctor/core/mcp";
import { type CallContext, emptyListing, type Listing } from "@junctor/core/provider";
import type { Calls } from "./calls.ts";
import type { Pool, PooledConnection } from "./pool.ts";

/** How long such a list of one server is waited for, at first and once it is known: a list is of all servers. */
const maxFirstMs = 5000;
const maxAgainMs = 1000;
/** How long a list that was late is not waited for. */
const lateMs = 30_000;

/** Lists of an extension, which are fetched when a caller wants them. */
export type LateListPart = "skills" | "groups";

interface LateListOptions<P extends LateListPart> {
  readonly part: P;
  readonly clock: Clock;
  readonly pool: Pick<Pool, "everyone" | "find">;
  readonly calls: Pick<Calls, "useListed">;
}

/**
 * Lists the skills or the groups of a server. One that never listed them is waited for; one that is down or late has what it listed
 * last.
 */
export function createLateList<P extends LateListPart>(
  options: LateListOptions<P>,
): (context: CallContext) => Promise<Listing<Items[P]>> {
  const { part, clock, pool, calls } = options;
  /** Of the connection for everyone: those of another connection are for its callers alone. */
  let last: Listing<Items[P]> | undefined;
  /** By connection: until when its list is not waited for, because it was late. 0 for a connection that gave it. */
  const lateUntil = new WeakMap<PooledConnection, number>();
  const list = (context: CallContext): Promise<Listing<Items[P]>> =>
    calls.useListed(context, async ({ client, pooled }) => {
      const listed = await client.list(part, context);
      if (pooled === pool.everyone) last = listed;
      if (!lateUntil.has(pooled)) lateUntil.set(pooled, 0);
      return listed;
    });
  return async (context) => {
    const connection = pool.find(context);
    const until = connection && lateUntil.get(connection);
    const isAway = pool.everyone.client === undefined || clock.now() < (until ?? 0);
    if (isAway && last !== undefined) return last;
    const listed = list(context).catch(() => undefined);
    const found = await waitFor(listed, { ms: until === undefined ? maxFirstMs : maxAgainMs, clock });
    const used = pool.find(context);
    if (found === timedOut && used !== undefined) lateUntil.set(used, clock.now() + lateMs);
    context.signal.throwIfAborted();
    last ??= emptyListing;
    return found === undefined || found === timedOut ? last : found;
  };
}
