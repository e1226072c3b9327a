import type { Target } from "@junctor/client";
import type { OAuthConfig, ServerConfig, ServerLaunch } from "../../config/index.ts";
import type { Parsed, SharedValues } from "../terminal/index.ts";

/** The server a command line means, and how to reach it. Dispose it when it is no longer needed. */
export interface Destination extends AsyncDisposable {
  readonly target: Target;
  readonly headers: { readonly [name: string]: string };
  /** `sse` speaks HTTP+SSE of 2024-11-05 and nothing else. */
  readonly transport?: "auto" | "sse";
  /** Set where a stored login may be used. */
  readonly login?: { readonly name: string; readonly url: string; readonly oauth?: OAuthConfig | undefined };
  /** When the command is to give up, if the person said so. */
  readonly deadline: CommandDeadline | undefined;
  /** The server of a config that was named. */
  readonly server?: NamedServer;
}

/** One server of a config, by itself. */
export interface NamedServer {
  readonly name: string;
  readonly launch: ServerLaunch;
  /** Takes the secrets of the config out of data. */
  hide<T>(data: T): T;
}

/** How long a command may take in all. Dispose it when the command is done. */
export interface CommandDeadline extends Disposable {
  readonly timeoutMs: number;
  /** Aborts when the time is over. */
  readonly signal: AbortSignal;
}

export function startDeadline(timeoutMs: number): CommandDeadline {
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(), timeoutMs);
  return { timeoutMs, signal: controller.signal, [Symbol.dispose]: () => clearTimeout(timer) };
}

/** A command line that names a server. */
export type ParsedTarget = Parsed<SharedValues<"target"> & Partial<SharedValues<"profile">>>;

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
