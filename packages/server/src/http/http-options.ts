import type { Clock, CallerLimits } from "@junctor/core/async";
import type { Seal, ServerCard } from "@junctor/core/mcp";
import { keys, type KeysOf } from "@junctor/core/options";
import type { Authenticate } from "./authenticate.ts";
import type { Elsewhere } from "./elsewhere.ts";
import type { OnWarning, Responses } from "./endpoint.ts";
import type { EventStore } from "./event-store.ts";
import type { GuardOptions } from "./guard.ts";
import type { Mounts } from "./mounts.ts";
import type { Pages } from "./pages.ts";

/** How the endpoint of a server answers over HTTP. Each setting has a default that is right for a server on this machine. */
export interface HttpOptions extends GuardOptions {
  /** The path of the endpoint; `/mcp`. */
  readonly path?: string;
  /** Further servers below that path. */
  readonly mounts?: Mounts;
  /** Pages for people beside the endpoint, such as those of a gateway whose callers connect accounts. */
  readonly pages?: Pages;
  readonly responses?: Responses;
  readonly authenticate?: Authenticate;
  /** Origins whose pages may read our answers; they are allowed as `Origin` too. None by default. */
  readonly corsOrigins?: readonly string[];
  /** Seals session ids. Share its secret to share sessions with other processes, or with the next one. */
  readonly seal?: Seal;
  readonly sessionTtlMs?: number;
  readonly sessionIdleMs?: number;
  readonly maxSessions?: number;
  /** Most that one caller may hold; see {@link CallerLimits}. */
  readonly perCaller?: CallerLimits;
  readonly events?: EventStore;
  readonly retryMs?: number;
  readonly keepAliveMs?: number;
  readonly maxBodyBytes?: number;
  readonly clock?: Clock;
  /** A draft: served to everyone at `PATH/server-card` and in `/.well-known/ai-catalog.json`. Needs `publicUrl`. */
  readonly serverCard?: ServerCard;
  /** By default written to the standard error stream. */
  readonly onWarning?: OnWarning;
  /** Whether the server can be used, for `GET /ready`; it says 503 until then. */
  readonly isReady?: () => boolean;
  /** Reaches the sessions of other processes of the same gateway; see {@link Elsewhere}. */
  readonly elsewhere?: Elsewhere | undefined;
}

export const httpOptionKeys: KeysOf<HttpOptions> = {
  ...keys(
    "host allowedHosts allowedOrigins publicUrl path mounts pages responses authenticate corsOrigins seal",
  ),
  ...keys(
    "sessionTtlMs sessionIdleMs maxSessions perCaller events retryMs keepAliveMs maxBodyBytes clock serverCard onWarning isReady elsewhere",
  ),
};
