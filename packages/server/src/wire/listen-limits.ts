import { type Clock, systemClock, LeakyBuckets, type CallerLimits, Quota } from "@junctor/core/async";
import { RpcError } from "@junctor/core/errors";

/** What callers hold and use of the things that are limited here. Servers that are given the same one share its limits. */
export interface ListenLimits {
  readonly streams: Quota;
  readonly watches: Quota;
  /** Counts a completion of a caller, or throws an `RpcError` for one too many. */
  readonly takeCompletion: (owner: unknown) => void;
}

/** Limits on streams, subscriptions and completions, with nothing held yet. */
export function createListenLimits(
  perCaller: CallerLimits = {},
  maxListens = 16_384,
  clock: Clock = systemClock,
): ListenLimits {
  return {
    streams: new Quota({ what: "listen streams", total: maxListens, each: () => perCaller.streams }),
    watches: new Quota({
      what: "resource subscriptions",
      total: maxWatched,
      each: () => perCaller.subscriptions ?? 4096,
    }),
    takeCompletion: limitCompletions(() => perCaller.completionsPerMinute ?? 600, clock),
  };
}

/** Most resources that are watched for all callers. */
const maxWatched = 100_000;

/** A client asks with every key that its user presses. The protocol wants servers to limit that (2025-11-25, completion: security). */
function limitCompletions(limit: () => number, clock: Clock): (owner: unknown) => void {
  if (!(limit() >= 1)) throw new RangeError(`completionsPerMinute must be 1 or more, not ${limit()}`);
  const buckets = new LeakyBuckets<unknown>(clock, () => 60_000 - 60_000 / limit());
  return (owner) => {
    const perMinute = limit();
    const bucket = buckets.of(owner);
    const retryAfterMs = Math.ceil(bucket.charge(0));
    if (retryAfterMs === 0) return void bucket.charge(60_000 / perMinute);
    const seconds = Math.ceil(retryAfterMs / 1000);
    const text = `You asked for too many completions; at most ${perMinute} a minute. Try again in ${seconds} s`;
    const data = { code: "rpc.too_many", delivery: "not_sent", most: perMinute, retryAfterMs };
    throw new RpcError("rpc.too_many", text, { data });
  };
}
