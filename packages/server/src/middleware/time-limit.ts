import { TimeoutError, ToolError } from "@junctor/core/errors";
import type { Middleware } from "@junctor/core/provider";
import { createGlob } from "./allow-list.ts";

export interface LimitTimeOptions {
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
