import type { ServerConfig } from "../gateway/config/config.ts";

/**
 * How long servers of a config are waited for in all, unless the person says so. Each of them fails earlier by itself when it
 * shows no sign of progress for its `startTimeoutMs`.
 */
const usualMs = 5 * 60_000;

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
