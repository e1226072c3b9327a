import { type Clock, systemClock, setNewest } from "@junctor/core/async";
import { ToolError, TimeoutError } from "@junctor/core/errors";
import { isLook, type Middleware } from "@junctor/core/provider";
import { createGlob, type NameTest } from "./allow-list.ts";

export interface Rate {
  readonly callsPerMinute: number;
  /** How many calls may come at once after a pause; a minute's worth when left out, and at least one. */
  readonly burst?: number;
}

export interface LimitRateOptions extends Rate {
  /** Further limits for the tools whose names fit a glob, each caller counted by itself. All that fit apply. */
  readonly tools?: { readonly [glob: string]: Rate };
  readonly clock?: Clock;
}

/** The caller that was not seen for longest is forgotten first, and begins with a full burst when seen again. */
const maxCallers = 10_000;

/**
 * Limits how often each caller may call; those whose name is not known share one limit. A call too many is refused, and
 * the model hears when to try again. Every round of a call that asks something counts: otherwise a caller that comes back with an
 * answer would call for free. Looking at a task, and cancelling one, does not.
 *
 * @throws RangeError for a rate or burst that cannot be
 * @example
 * withMiddleware(provider, [limitRate({ callsPerMinute: 120, tools: { "search_*": { callsPerMinute: 10 } } })]);
 */
export function limitRate(options: LimitRateOptions): Middleware {
  return createRateLimit(options).middleware;
}

/** A limit, and what each caller has left of it. */
export interface RateLimit {
  readonly middleware: Middleware;
  /** By caller; a bucket a rule, in their order. */
  readonly callers: ReadonlyMap<string | undefined, readonly Bucket[]>;
}

/** Like {@link limitRate}, but what callers used up under the rules of an earlier limit counts for the same tools. */
export function createRateLimit(options: LimitRateOptions, earlier?: RateLimit): RateLimit {
  const { tools = {}, clock = systemClock } = options;
  const rules = [
    toRule("*", options),
    ...Object.entries(tools).map(([glob, rate]) => toRule(glob, rate, ` of ${glob}`)),
  ];
  const callers = new Map<string | undefined, readonly Bucket[]>();
  for (const [caller, buckets] of earlier?.callers ?? []) {
    const kept = (rule: RateRule): Bucket => {
      const now = clock.now();
      return new Bucket(rule, now, buckets.find((bucket) => bucket.rule.key === rule.key)?.tokensAt(now));
    };
    callers.set(caller, rules.map(kept));
  }

  const recall = (caller: string | undefined, now: number): readonly Bucket[] => {
    const buckets = callers.get(caller) ?? rules.map((rule) => new Bucket(rule, now));
    setNewest(callers, caller, buckets, maxCallers);
    return buckets;
  };

  const middleware: Middleware = {
    beforeCall: (operation, { caller }) => {
      if (isLook(operation)) return;
      const { name } = operation;
      const now = clock.now();
      const counting = recall(caller, now).filter(({ rule }) => rule.fits(name));
      // All are asked before any is taken from, so a refused call is not counted.
      for (const bucket of counting) assertRoom(bucket, now);
      for (const bucket of counting) bucket.take();
    },
  };
  return { middleware, callers };
}

/** One limit on the calls of each caller. */
export interface RateRule {
  /** Which tools it is about; not how many calls, so that an edit of the number gives no caller a full burst. */
  readonly key: string;
  readonly fits: NameTest;
  readonly perMs: number;
  readonly burst: number;
  /** The limit in words. */
  readonly words: string;
}

/** @throws RangeError for a rate or burst that cannot be */
export function toRule(glob: string, { callsPerMinute, burst }: Rate, what = ""): RateRule {
  if (!(callsPerMinute > 0)) throw new RangeError(`callsPerMinute must be above 0, not ${callsPerMinute}`);
  if (burst !== undefined && !(burst >= 1)) throw new RangeError(`burst must be 1 or more, not ${burst}`);
  return {
    key: JSON.stringify([glob, what]),
    fits: createGlob(glob),
    perMs: callsPerMinute / 60_000,
    burst: burst ?? Math.max(1, callsPerMinute),
    words: callsPerMinute === 1 ? `1 call a minute${what} is` : `${callsPerMinute} calls a minute${what} are`,
  };
}

function assertRoom(bucket: Bucket, now: number): void {
  const waitMs = bucket.waitMs(now);
  if (waitMs > 0) throw toRefusal(bucket.rule, waitMs);
}

/** Tells the model when to try again. */
export function toRefusal({ words }: RateRule, waitMs: number): ToolError {
  const seconds = Math.ceil(waitMs / 1000);
  return new ToolError(`No more than ${words} allowed. Try again in ${seconds} s.`, {
    code: "tool.rate_limited",
  });
}

/** What one caller may still call under one rule. It fills by the time that went by, so nothing has to run. */
export class Bucket {
  readonly rule: RateRule;
  #tokens: number;
  #filledAt: number;

  constructor(rule: RateRule, now: number, tokens: number = Infinity) {
    this.rule = rule;
    this.#tokens = Math.min(rule.burst, tokens);
    this.#filledAt = now;
  }

  /** How long until there is room for a call; 0 when there is. */
  waitMs(now: number): number {
    // Sums of fractions fall short of one by less than this.
    const missing = 1 - 1e-9 - this.tokensAt(now);
    return missing <= 0 ? 0 : missing / this.rule.perMs;
  }

  tokensAt(now: number): number {
    const { perMs, burst } = this.rule;
    // A clock that was set back must not take away what was there.
    const passedMs = Math.max(0, now - this.#filledAt);
    this.#tokens = Math.min(burst, this.#tokens + passedMs * perMs);
    this.#filledAt = now;
    return this.#tokens;
  }

  take(): void {
    this.#tokens -= 1;
  }
}

interface LimitTimeOptions {
  /** How long a call may take, in milliseconds. */
  readonly ms: number;
  /** Other limits for the tools whose names fit a glob. Of several that fit, the smallest counts. */
  readonly tools?: { readonly [glob: string]: number };
}

/**
 * Stops calls that take too long: their signal is aborted, and the call ends at once for the model, even if the tool does not heed
 * its signal. Each round of a call that asks the user something has the whole time.
 *
 * @throws RangeError for a limit that is not a positive number
 * @example
 * withMiddleware(provider, [limitTime({ ms: 30_000, tools: { "report_*": 300_000 } })]);
 */
export function limitTime({ ms, tools = {} }: LimitTimeOptions): Middleware {
  assertLimit("ms", ms);
  const rules = Object.entries(tools).map(([glob, limitMs]) => {
    assertLimit(`tools[${JSON.stringify(glob)}]`, limitMs);
    return { fits: createGlob(glob), limitMs };
  });
  const limitOf = (name: string): number => {
    const own = rules.filter(({ fits }) => fits(name)).map(({ limitMs }) => limitMs);
    return own.length === 0 ? ms : Math.min(...own);
  };
  return {
    beforeCall: ({ name }) => ({ timeoutMs: limitOf(name) }),
    afterCall: ({ name }, end) => {
      if (end.kind !== "failed" || !(end.error instanceof TimeoutError)) return;
      const timeoutMs = limitOf(name);
      // Another limit, such as that of an upstream, is reported as what it is.
      if (end.error.kind !== "total" || end.error.timeoutMs !== timeoutMs) return;
      const message = `${name} was not done after ${timeoutMs / 1000} s and was stopped. It may have had effects.`;
      return { kind: "failed", error: new ToolError(message, { cause: end.error }) };
    },
  };
}

function assertLimit(what: string, ms: number): void {
  if (!(ms > 0)) throw new RangeError(`${what} must be a positive number of milliseconds, not ${ms}`);
}
