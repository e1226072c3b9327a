import type { ServerConfig } from "../gateway/config/config.ts";

/** How long servers of a config are waited for, unless the person says so: as long as any of them may take to start. */
export function toPatienceMs(servers: readonly ServerConfig[]): number {
  return Math.max(30_000, ...servers.map(({ startTimeoutMs }) => startTimeoutMs));
}

/** A server that is started at once, and is given as long as the person wants to wait. */
export function toPatient(server: ServerConfig, startTimeoutMs: number): ServerConfig {
  return { ...server, start: "eager", idleStopMs: undefined, startTimeoutMs };
}
