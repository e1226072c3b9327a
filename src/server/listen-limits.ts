import { type CallerLimits, Shares } from "../async/shares.ts";

/** What callers hold of the things that are limited here. Servers that are given the same one share its limits. */
export interface ListenLimits {
  readonly streams: Shares;
  readonly watches: Shares;
}

/** Limits on streams and subscriptions, with nothing held yet. */
export function createListenLimits(perCaller: CallerLimits = {}, maxListens = 16_384): ListenLimits {
  const { subscriptions: each = 4096 } = perCaller;
  return {
    streams: new Shares({ what: "listen streams", total: maxListens, each: perCaller.streams }),
    watches: new Shares({ what: "resource subscriptions", total: maxWatched, each }),
  };
}

/** Most resources that are watched for all callers. */
const maxWatched = 100_000;
