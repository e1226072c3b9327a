import { type Clock, systemClock, setNewest } from "@junctor/core/async";
import { ToolError, TimeoutError } from "@junctor/core/errors";
import { isLook, type Middleware } from "@junctor/core/provider";
import { createGlob, type NameTest } from "./allow-list.ts";

export interface Rate {
  readonly callsPerMinute: number;
  /** How many calls may come at once after a pause; by default a minute's worth, and at least one. */
  readonly burst?: number;
}

export interface LimitRateOptions extends Rate {
  /** Further limits for the tools whose names fit a glob, for each caller. All that fit apply. */
  readonly tools?: { readonly [glob: string]: Rate };
  readonly clock?: Clock;
}

/** The most callers that are remembered. The one that was not seen for longest is forgotten first, and gets a full burst again. */
const maxCallers = 10_000;

/**
 * Limits how often each caller may call; callers without a name share one limit. A call too many is refused, and the model is told
 * when to try again. Every round of a call that asks something counts, because otherwise a retry with an answer would be free.
 * Requests for the state of a task, and to cancel it, do not count.
 *
 * @throws RangeError for an invalid rate or burst
 * @example
 * withMiddleware(provider, [limitRate({ callsPerMinute: 120, tools: { "search_*": { callsPerMinute: 10 } } })]);
 */
export function limitRate(options: LimitRateOptions): Middleware {
  return createRateLimit(options).middleware;
}

/** A limit, and what each caller has left of it. */
export interface RateLimit {
  readonly middleware: Middleware;
  /** By caller: one bucket for each rule, in order. */
  readonly callers: ReadonlyMap<string | undefined, readonly Bucket[]>;
}

/** Like {@link limitRate}, but calls that were counted by an earlier limit still count for the same tools. */
export function createRateLimit(options: LimitRateOptions, earlier?: RateLimit): RateLimit {
  const { tools = {}, clock = systemClock } = options;
  const rules = [
    toRule("*", options),
    ...Object.entries(tools).map(([glob, rate]) => toRule(glob, rate, ` of ${glob}`)),
  ];
  const callers = new Map<string | undefined, readonly Bucket[]>();
  for (const [caller, buckets] of earlier?.callers ?? []) {
    const toBucket = (rule: RateRule): Bucket => {
      const now = clock.now();
      return new Bucket(rule, now, buckets.find((bucket) => bucket.rule.key === rule.key)?.tokensAt(now));
    };
    callers.set(caller, rules.map(toBucket));
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
      // All are checked before any is charged, so a refused call is not counted.
      for (const bucket of counting) assertRoom(bucket, now);
      for (const bucket of counting) bucket.take();
    },
  };
  return { middleware, callers };
}

/** One limit on the calls of each caller. */
export interface RateRule {
  /** Identifies its tools, not its number of calls: editing the number must not give callers a full burst. */
  readonly key: string;
  readonly fits: NameTest;
  readonly perMs: number;
  readonly burst: number;
  /** The limit in words. */
  readonly words: string;
}

/** @throws RangeError for an invalid rate or burst */
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

/** The error that tells the model when to try again. */
export function toRefusal({ words }: RateRule, waitMs: number): ToolError {
  const seconds = Math.ceil(waitMs / 1000);
  return new ToolError(`No more than ${words} allowed. Try again in ${seconds} s.`, {
    code: "tool.rate_limited",
  });
}

/** The calls that one caller has left under one rule. Refilled by the time that has passed, without a timer. */
export class Bucket {
  readonly rule: RateRule;
  #tokens: number;
  #filledAt: number;

  constructor(rule: RateRule, now: number, tokens: number = Infinity) {
    this.rule = rule;
    this.#tokens = Math.min(rule.burst, tokens);
    this.#filledAt = now;
  }

  /** How long until there is room for a call; 0 if there is room now. */
  waitMs(now: number): number {
    // Rounding errors of sums are smaller than this.
    const missing = 1 - 1e-9 - this.tokensAt(now);
    return missing <= 0 ? 0 : missing / this.rule.perMs;
  }

  tokensAt(now: number): number {
    const { perMs, burst } = this.rule;
    // A clock that was set back must not take tokens away.
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
 * Stops calls that take too long: their signal is aborted, and the call ends at once for the model, even if the tool ignores its
 * signal. Each round of a call that asks the user something has the whole time.
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
      // The error of another limit, such as that of an upstream, is kept.
      if (end.error.kind !== "total" || end.error.timeoutMs !== timeoutMs) return;
      const message = `${name} was not done after ${timeoutMs / 1000} s and was stopped. It may have had effects.`;
      return { kind: "failed", error: new ToolError(message, { cause: end.error }) };
    },
  };
}

function assertLimit(what: string, ms: number): void {
  if (!(ms > 0)) throw new RangeError(`${what} must be a positive number of milliseconds, not ${ms}`);
}
