import type { Target } from "@junctor/client";
import type { ServerLaunch, OAuthConfig } from "../../config/index.ts";
import type { Parsed, SharedValues } from "../terminal/index.ts";

/** The server a command line means, and how to reach it. Dispose it when it is no longer needed. */
export interface Destination extends AsyncDisposable {
  readonly target: Target;
  readonly headers: { readonly [name: string]: string };
  /** `sse` speaks HTTP+SSE of 2024-11-05 and nothing else. */
  readonly transport?: "auto" | "sse";
  /** There where a stored login may be used. */
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
