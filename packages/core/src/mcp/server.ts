import type { Awaitable, Cancellation } from "../async/index.ts";
import type { RawJson } from "../json/index.ts";
import type { PeerContext, Request } from "../rpc/index.ts";
import type { Caller } from "./caller.ts";
import type { Era, HeaderLookup } from "./era.ts";
import type { Observation } from "./observation.ts";
import type { Announce, Handshake, Session } from "./session.ts";

/** Everything a transport knows about one request. */
export interface WireContext extends PeerContext {
  readonly era: Era;
  /** Who is calling, as established by the transport (never self-reported); undefined when it is not known. */
  readonly caller?: string | undefined;
  /** The same caller with all that is known of it; `caller` is its name. */
  readonly identity?: Caller | undefined;
  /** Whose share the request counts towards: the caller, its address where callers have no names, or its channel. */
  readonly owner?: unknown;
  /** Present on HTTP: a modern tool call may have to mirror arguments in headers. */
  readonly headers?: HeaderLookup | undefined;
  /** Sends a request to the client that belongs to this one. Legacy only: modern servers send none. */
  ask?(method: string, params: RawJson | undefined, signal: AbortSignal): Promise<RawJson>;
  /** Aborted when the client sends nothing more, though it may still read. Missing on HTTP, where each request has an input of its own. */
  readonly inputEnd?: Cancellation | undefined;
  /** Whether its answer was given: a notification would be dropped now. Missing where the pipe is the same for everything. */
  readonly isOver?: boolean;
  /** Closes the client's connection while the work continues; the client comes back for the result (2025-11-25 over HTTP only). */
  release?(): Promise<void>;
  /** Starts a legacy session; called once, by `initialize`. */
  beginSession?(handshake: Handshake): void;
  /** Set by a server with an observer. */
  observation?: Observation | undefined;
}

/** A Provider made ready for the wire. Transports know this interface and nothing behind it. */
export interface Server {
  readonly serves: "both" | "legacy" | "modern";
  /** The error code for input that is not JSON. */
  readonly parseErrorCode: number;
  /** Serves one request of either era. Throws or rejects with an `RpcError` and nothing else. */
  handle(request: Request, context: WireContext): Awaitable<RawJson>;
  /** Announces changes to a legacy session until the returned function is called, which ends its subscriptions too. */
  attach(session: Session, announce: Announce, caller?: string): () => void;
  /**
   * Calls back, until the returned function is called, when the access of a caller is revoked; undefined stands for callers
   * without a name. A transport that knows its callers then ends their calls, streams and sessions.
   */
  onRevoked?(listener: (caller: string | undefined) => void): () => void;
  /** Ends what would never end by itself: streams of change notifications get their result. */
  drain(): void;
}

/**
 * Sees each request of a server: the one seam for metrics, traces, the access log and the live feed. A server without an
 * observer makes no observations, and `observation` is undefined everywhere.
 */
export interface Observer {
  /** A request came in. Undefined for a request that is not observed. */
  began(request: Request, wire: WireContext): Observation | undefined;
}
