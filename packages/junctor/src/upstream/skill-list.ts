import { type Clock, timedOut, waitFor } from "@junctor/core/async";
import type { Skill } from "@junctor/core/mcp";
import { type CallContext, emptyListing, type Listing } from "@junctor/core/provider";
import type { Calls } from "./calls.ts";
import { toProvider } from "./client-provider.ts";
import type { Pool, PooledConnection } from "./pool.ts";

/** How long the skills of one server are waited for, at first and once they are known: a list is of all servers. */
const maxFirstMs = 5000;
const maxAgainMs = 1000;
/** How long skills that were late are not waited for. */
const lateMs = 30_000;

interface SkillListOptions {
  readonly clock: Clock;
  readonly pool: Pick<Pool, "everyone" | "find">;
  readonly calls: Pick<Calls, "useListed">;
}

/**
 * Lists the skills of a server. One whose skills were never listed is waited for; one that is down or late has the skills that it
 * listed last.
 */
export function createSkillList(
  options: SkillListOptions,
): (context: CallContext) => Promise<Listing<Skill>> {
  const { clock, pool, calls } = options;
  /** Of the connection for everyone: those of another connection are for its callers alone. */
  let last: Listing<Skill> | undefined;
  /** By connection: until when its skills are not waited for, because they were late. 0 for a connection that listed them. */
  const lateUntil = new WeakMap<PooledConnection, number>();
  const list = (context: CallContext): Promise<Listing<Skill>> =>
    calls.useListed(context, async ({ client, pooled }) => {
      const listed = await toProvider(client).list("skills", context);
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
