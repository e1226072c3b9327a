import type { Clock, CallerLimits } from "@junctor/core/async";
import type { Seal, ServerCard } from "@junctor/core/mcp";
import { keys, type KeysOf } from "@junctor/core/options";
import type { Authenticate } from "./authenticate.ts";
import type { OnWarning, Responses } from "./endpoint.ts";
import type { EventStore } from "./event-store.ts";
import type { GuardOptions } from "./guard.ts";
import type { Mounts, Pages } from "./mounts.ts";
import type { SinkLimits } from "./reply.ts";
import type { Elsewhere } from "./session-table.ts";
import type { TlsOptions } from "./tls.ts";

/** How the endpoint of a server answers over HTTP. The defaults suit a server on this machine. */
export interface HttpOptions extends GuardOptions {
  /** The path of the endpoint; `/mcp`. `*` is every path without another use, behind a router that has matched the path. */
  readonly path?: string;
  /** Further servers below that path. */
  readonly mounts?: Mounts;
  /** Pages for people beside the endpoint, such as those of a gateway whose callers connect accounts. */
  readonly pages?: Pages;
  /** Whether calls are answered as JSON or as a stream of events; `auto`, for each call, by default. */
  readonly responses?: Responses;
  /** Finds out who sent a request; see {@link Authenticate}. Needed beyond loopback. */
  readonly authenticate?: Authenticate;
  /** Origins whose pages may read our answers; they are allowed as `Origin` too. None by default. */
  readonly corsOrigins?: readonly string[];
  /** Seals session ids. Share its secret to share sessions with other processes, or with the next one. */
  readonly seal?: Seal;
  /** How long a legacy session is valid; 24 hours. */
  readonly sessionTtlMs?: number;
  /** How long an idle legacy session stays in memory; 5 minutes. Its id stays valid. */
  readonly sessionIdleMs?: number;
  /** The most legacy sessions in memory; 16,384. */
  readonly maxSessions?: number;
  /** The most that one caller may hold; see {@link CallerLimits}. */
  readonly perCaller?: CallerLimits;
  /** Keeps events for clients that lost their connection; in memory by default. */
  readonly events?: EventStore;
  /** How long a client whose stream was closed should wait before it comes back; 1 s. */
  readonly retryMs?: number;
  /** How often a quiet stream gets a comment, so that no proxy closes it; 15 s. */
  readonly keepAliveMs?: number;
  /** The most bytes of a request's body; 4 MiB. */
  readonly maxBodyBytes?: number;
  /** The clock that times are measured by; the system's by default. */
  readonly clock?: Clock;
  /** A draft: served to everyone at `PATH/server-card` and in `/.well-known/ai-catalog.json`. Needs `publicUrl`. */
  readonly serverCard?: ServerCard;
  /** Called for warnings; by default they are written to the standard error stream. */
  readonly onWarning?: OnWarning;
  /** Whether the server can be used, for `GET /ready`; it says 503 until then. */
  readonly isReady?: () => boolean;
  /** Reaches the sessions of other processes of the same gateway; see {@link Elsewhere}. */
  readonly elsewhere?: Elsewhere | undefined;
}

const httpOptionKeys: KeysOf<HttpOptions> = {
  ...keys(
    "host allowedHosts allowedOrigins publicUrl path mounts pages responses authenticate corsOrigins seal",
  ),
  ...keys(
    "sessionTtlMs sessionIdleMs maxSessions perCaller events retryMs keepAliveMs maxBodyBytes clock serverCard onWarning isReady elsewhere",
  ),
};

/** Where `listenHttp` listens, and how it answers. */
export interface ListenHttpOptions extends HttpOptions {
  /** The port to listen on; 7780. 0 picks a free one. */
  readonly port?: number;
  /** Beyond loopback, `authenticate` must be given. */
  readonly host?: string;
  /** Files for TLS; without them the endpoint speaks plain HTTP. Authenticators see client certificates as `request.certificate`. */
  readonly tls?: TlsOptions;
  /** The most bytes that wait for one reader that is behind; 1 MiB. */
  readonly maxBufferBytes?: number;
  /** The most bytes that wait for all readers; 256 MiB. */
  readonly maxUnreadBytes?: number;
  /** How long a reader may take nothing; 60 s. */
  readonly stallMs?: number;
  /** How long a client may take to send its headers. */
  readonly headersTimeoutMs?: number;
  /** How long a client may take to send its whole request. */
  readonly requestTimeoutMs?: number;
  /** The most sockets that are open at once; 16,384. */
  readonly maxConnections?: number;
  /**
   * How much memory this process may have, in bytes. Above 80 % of it, or of V8's limit for the heap, callers with many calls
   * are refused with 503 and streams are cut; above 90 % every call is refused. The limit of the container, if there is one.
   */
  readonly maxMemoryBytes?: number;
  /** How long calls underway may still take when the listener is disposed. */
  readonly graceMs?: number;
  /** Called for requests that were refused before they were served. */
  readonly onRefused?: SinkLimits["onRefused"];
}

export const listenHttpOptionKeys: KeysOf<ListenHttpOptions> = {
  ...httpOptionKeys,
  ...keys(
    "port tls maxBufferBytes maxUnreadBytes stallMs headersTimeoutMs requestTimeoutMs maxConnections maxMemoryBytes graceMs onRefused",
  ),
};
