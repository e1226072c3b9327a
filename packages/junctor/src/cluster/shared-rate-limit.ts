import { createHash } from "node:crypto";
import { type Clock, systemClock, timedOut, waitFor, setNewest } from "@junctor/core/async";
import { isLook, type Middleware } from "@junctor/core/provider";
import {
  Bucket,
  type LimitRateOptions,
  type Rate,
  type RateLimit,
  type RateRule,
  toRefusal,
  toRule,
} from "@junctor/server/internal";

/** A place that gives out the tokens of limits to several processes, such as the store of a cluster. */
export interface TokenSource {
  /** Takes up to `count` tokens of a limit (GCRA). Says how many were given, and when there is another one. */
  take(limit: TokenLimit, count: number): Promise<{ readonly count: number; readonly waitMs: number }>;
  /** How many processes share the limits, as far as is known. */
  replicas(): number;
}

interface TokenLimit {
  readonly key: string;
  /** How long one token takes to come back. */
  readonly everyMs: number;
  readonly burst: number;
}

/** A rate. If it is strict, no process takes tokens ahead. */
export interface SharedRate extends Rate {
  readonly strict?: boolean;
}

interface SharedRateOptions extends Omit<LimitRateOptions, "tools" | "callsPerMinute"> {
  /** Limits by globs on the names of tools; undefined for all of them. */
  readonly rates: readonly (readonly [glob: string | undefined, rate: SharedRate])[];
  readonly source: TokenSource;
}

/** The most callers that are remembered, as for a limit that is not shared. */
const maxCallers = 10_000;
/** How long a call waits for the source. After that the process uses its share of the limit. */
const patienceMs = 250;
/** How long a source that failed is not asked again. */
const downMs = 1_000;

/** All processes together hold at most this part of a burst ahead. */
const aheadPart = 1 / 10;

/**
 * Limits how often each caller may call all processes of a gateway together. A process takes tokens ahead, so few calls wait for the
 * source. In any stretch of time, the tokens that all processes took and the calls that they allowed differ by what they hold ahead, a
 * tenth of the burst at most. So a caller that stays within 90 % of its limit is never refused, however its calls are spread, and no caller gets
 * more than its limit and a tenth of the burst. While the source cannot be reached, each process allows its share of the limit.
 */
export function createSharedRateLimit(options: SharedRateOptions): RateLimit {
  const { rates, source, clock = systemClock } = options;
  const rules = rates.map(([glob, rate]) => ({
    rule: toRule(glob ?? "*", rate, glob === undefined ? "" : ` of ${glob}`),
    isStrict: rate.strict === true,
  }));
  const reach: Reach = { source, clock, downUntil: 0 };
  const callers = new Map<string | undefined, readonly TokenLease[]>();
  const recall = (caller: string | undefined): readonly TokenLease[] => {
    const leases = callers.get(caller) ?? rules.map((one) => new TokenLease(reach, one, caller));
    setNewest(callers, caller, leases, maxCallers);
    return leases;
  };
  const middleware: Middleware = {
    beforeCall: (operation, { caller }) => {
      if (isLook(operation)) return undefined;
      const { name } = operation;
      const counting = recall(caller).filter(({ rule }) => rule.fits(name));
      // All are asked before any is taken from, so a refused call is not counted.
      if (!counting.every((lease) => lease.hasToken)) return takeLater(counting);
      for (const lease of counting) lease.take();
      return undefined;
    },
  };
  // The source knows what was used up, so nothing is handed to a later config.
  return { middleware, callers: new Map() };
}

/** The source, and until when it is not asked because it failed. */
interface Reach {
  readonly source: TokenSource;
  readonly clock: Clock;
  downUntil: number;
}

/** Takes a token from each lease once all have one. It ends: each round gives some call a token, or refuses one. */
async function takeLater(counting: readonly TokenLease[]): Promise<void> {
  do {
    for (const lease of counting) if (!lease.hasToken) await lease.refill();
    // Other calls that waited may have taken the tokens.
  } while (!counting.every((lease) => lease.hasToken));
  for (const lease of counting) lease.take();
}

/**
 * The tokens of one caller under one rule that this process took ahead. They stay until they are used: the source has counted them, and
 * if they were thrown away, each process would use up the limit without a call.
 */
class TokenLease {
  readonly rule: RateRule;
  readonly #reach: Reach;
  readonly #limit: TokenLimit;
  readonly #isStrict: boolean;
  #left = 0;
  /** How many to take next. It doubles, so that few are lost with a caller that is forgotten soon. */
  #lot = 1;
  #refusedUntil = 0;
  #refilling: Promise<void> | undefined;
  #share: Bucket | undefined;

  constructor(
    reach: Reach,
    { rule, isStrict }: { readonly rule: RateRule; readonly isStrict: boolean },
    caller: string | undefined,
  ) {
    const burst = Math.floor(rule.burst);
    this.rule = rule;
    this.#reach = reach;
    this.#limit = { key: toKey(rule, caller), everyMs: 1 / rule.perMs, burst };
    this.#isStrict = isStrict;
  }

  get hasToken(): boolean {
    return this.#left >= 1;
  }

  take(): void {
    this.#left -= 1;
  }

  /** Gets more tokens, for all calls that wait. Throws a `ToolError` when there is none. */
  refill(): Promise<void> {
    this.#refilling ??= this.#ask().finally(() => (this.#refilling = undefined));
    return this.#refilling;
  }

  async #ask(): Promise<void> {
    const { clock, source } = this.#reach;
    const now = clock.now();
    if (now < this.#refusedUntil) throw toRefusal(this.rule, this.#refusedUntil - now);
    if (now < this.#reach.downUntil) return this.#takeFromShare(now);
    const lot = Math.min(this.#lot, this.#maxLot());
    const taking = source.take(this.#limit, lot);
    const taken = await waitFor(taking, { ms: patienceMs, clock }).catch((): typeof timedOut => timedOut);
    if (taken === timedOut) {
      this.#reach.downUntil = clock.now() + downMs;
      return this.#takeFromShare(clock.now());
    }
    this.#share = undefined;
    if (taken.count === 0) {
      this.#refusedUntil = now + taken.waitMs;
      throw toRefusal(this.rule, taken.waitMs);
    }
    this.#left = taken.count;
    this.#lot = 2 * lot;
  }

  /** One token is for the call that waits for it; the others are held ahead. */
  #maxLot(): number {
    if (this.#isStrict) return 1;
    return 1 + Math.floor((this.#limit.burst * aheadPart) / Math.max(1, this.#reach.source.replicas()));
  }

  /** The source cannot be reached: the share of this process counts. */
  #takeFromShare(now: number): void {
    const replicas = Math.max(1, this.#reach.source.replicas());
    const { perMs, burst } = this.rule;
    const share = { ...this.rule, perMs: perMs / replicas, burst: Math.max(1, burst / replicas) };
    const isKept = this.#share !== undefined && this.#share.rule.perMs === share.perMs;
    const bucket =
      isKept && this.#share !== undefined ? this.#share : new Bucket(share, now, this.#share?.tokensAt(now));
    this.#share = bucket;
    const waitMs = bucket.waitMs(now);
    if (waitMs > 0) throw toRefusal(this.rule, waitMs);
    bucket.take();
    this.#left = 1;
  }
}

/** Names of callers may be long, and may have characters in them that a store does not accept. */
function toKey({ key }: RateRule, caller: string | undefined): string {
  const digest = createHash("sha256")
    .update(JSON.stringify([key, caller ?? null]))
    .digest("base64url");
  return `limit:${digest.slice(0, 32)}`;
}
