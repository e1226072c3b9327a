import type { ServerConfig } from "../../config/index.ts";

/**
 * How long servers of a config are waited for in all, unless the person says so. Each of them fails earlier by itself when it
 * shows no sign of progress for its `startTimeoutMs`.
 */
const usualMs = 5 * 60_000;

/** How long an answer to a ping is waited for, at most and at least. */
const maxMeasureMs = 5000;
const minMeasureMs = 1000;

/** How long servers that are up may take to answer a ping: what is left of the person's `timeoutMs`, but not too little. */
export function toMeasureMs(timeoutMs: number | undefined, passedMs: number): number {
  if (timeoutMs === undefined) return maxMeasureMs;
  return Math.min(maxMeasureMs, Math.max(minMeasureMs, Math.ceil(timeoutMs - passedMs)));
}

/** Servers that are started at once, and how long all of them are waited for. A `timeoutMs` of the person holds for each. */
export function toPatient(
  servers: readonly ServerConfig[],
  timeoutMs: number | undefined,
): { readonly servers: readonly ServerConfig[]; readonly firstListMs: number } {
  const limits = timeoutMs === undefined ? {} : { startTimeoutMs: timeoutMs, maxStartMs: timeoutMs };
  return {
    servers: servers.map((server) => ({ ...server, start: "eager", idleStopMs: undefined, ...limits })),
    firstListMs: timeoutMs ?? usualMs,
  };
}
