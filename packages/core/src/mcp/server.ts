import type { Awaitable, Cancellation } from "../async/index.ts";
import type { RpcError, ClosedError } from "../errors/index.ts";
import type { RawJson } from "../json/index.ts";
import type { PeerContext, Request, Notification } from "../rpc/index.ts";
import type { Era, HeaderLookup } from "./era.ts";
import type { Caller, Announce, Handshake, Session } from "./session.ts";

/** Everything a transport knows about one request. */
export interface WireContext extends PeerContext {
  readonly era: Era;
  /** Who is calling, as established by the transport (never self-reported); undefined when it is not known. */
  readonly caller?: string | undefined;
  /** The same caller with all that is known of it; `caller` is its name. */
  readonly identity?: Caller | undefined;
  /**
   * The owner that quotas count the request for: the caller, its address where callers have
   * no names, or its channel.
   */
  readonly owner?: unknown;
  /** Present on HTTP: a modern tool call may have to mirror arguments in headers. */
  readonly headers?: HeaderLookup | undefined;
  /** Sends the client a request that belongs to this one. Legacy only: modern servers send none. */
  ask?(method: string, params: RawJson | undefined, signal: AbortSignal): Promise<RawJson>;
  /** Aborted when the client sends nothing more, though it may still read. Missing on HTTP, where each request has an input of its own. */
  readonly inputEnd?: Cancellation | undefined;
  /**
   * Whether it was answered, so that a notification would be dropped now. Missing where one
   * channel carries everything.
   */
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

/** One request, from the moment it came in until it is answered. No member throws. */
export interface Observation {
  /** The id of the call in the admin API and in logs, the same for all its rounds. */
  readonly id: string;
  /** The `traceparent` to send to the server in place of the caller's; undefined to pass the caller's on. */
  readonly traceparent: string | undefined;
  /** The request is for a thing of this server, which has its own name for it; `name` is the one that the caller used. */
  found(server: string, ownName: string, name: string): void;
  /** The request is sent to its server; `era` is the era of that server. */
  sent(era: "modern" | "legacy" | undefined): SentObservation;
  /** How many questions the server asked the caller. */
  asked(questions: number): void;
  /** A legacy caller answered a question in the middle of its call. */
  answered(): void;
  /** Data to give to `resumed` of the next round. It travels inside the sealed state. */
  carried(): unknown;
  /** The request is a further round of an earlier one. */
  resumed(carried: unknown): void;
  /** How the work for the request ended, before the answer is written: with a result of this kind, or by an error. */
  outcome(kind: "complete" | "input_required" | "task", result: RawJson): void;
  failed(error: unknown): void;
  /** The request is answered. */
  ended(result: RawJson | undefined, error?: RpcError): void;
}

/** One request to a server behind the gateway. */
export interface SentObservation {
  ended(result: RawJson | undefined, error?: unknown): void;
}

/**
 * What a server publishes about itself before a client connects. SEP-2127 is a draft:
 * addresses and form may change.
 */
export interface ServerCard {
  /** In reverse order of a domain, such as `com.example/gateway`. */
  readonly name: string;
  readonly title?: string;
  readonly description: string;
  /** Junctor's version when left out. */
  readonly version?: string;
}

/** Whether a text can name a server in its card: a domain in reverse order, a slash and a name. */
export function isCardName(name: string): boolean {
  return cardNamePattern.test(name);
}

/** The domain and the name in it. */
export const cardNamePattern: RegExp = /^([a-z0-9-]+(?:\.[a-z0-9-]+)+)\/([\w.-]+)$/i;

/** What arrives on a link besides the results of requests. */
export interface LinkEvents {
  notified(notification: Notification): void;
  /** A legacy server sends a request to the client. An error that is thrown becomes the error response. */
  asked(request: Request, signal: AbortSignal): Promise<RawJson>;
}

/** One request on its way out. */
export interface LinkRequest {
  readonly method: string;
  readonly params: RawJson | undefined;
  /** Aborting cancels the request by the means of the link, and rejects with the reason. */
  readonly stop: Cancellation;
  /** The tool, prompt or resource it is about, where that is known without looking into `params`. */
  readonly about?: string | undefined;
  /** Arguments a modern HTTP request repeats in its headers, by header name. */
  readonly mirrored?: { readonly [header: string]: string } | undefined;
  /** Takes the messages on this request's own stream, where the link has one; else the link's events do. */
  readonly events?: (() => Partial<LinkEvents>) | undefined;
  /**
   * Called when the request is about to be sent. After a failure before that, the
   * server has received nothing.
   */
  readonly onSent?: (() => void) | undefined;
  /** An id outside the usual numbers, for probes whose answer may come too late. */
  readonly id?: string | undefined;
}

/** How the other side talks; settled before the first request that is not a probe. */
export type LinkMode =
  | { readonly kind: "modern"; readonly revision: string }
  | { readonly kind: "legacy"; readonly revision: string | undefined };

/** How busy a starting server has been so far. Both figures grow while it works. */
export interface StartProgress {
  /** What it wrote to its standard error stream. */
  readonly stderrBytes: number;
  /** The processor time that it and its descendants used; 0 where that is not known. */
  readonly processorMs: number;
}

/**
 * The client's side of one server: the counterpart of `Server`. Every failure says whether the
 * request was `not_sent` or its `outcome_unknown`. Disposing it ends the connection and the
 * process that it started, if any.
 */
export interface Link extends AsyncDisposable {
  /** What to call the server in messages. */
  readonly target: string;
  /**
   * Resolves with the result. Rejects with `RpcError` for the server's own error, `ClosedError`, `HttpError`,
   * `SessionExpiredError`, or the signal's reason.
   */
  request(request: LinkRequest): Promise<RawJson>;
  notify(method: string, params: RawJson | undefined): Promise<void>;
  /** Tells the link which era it speaks; HTTP headers depend on it. */
  use(mode: LinkMode): void;
  /**
   * Keeps a legacy server's own stream open until the link is disposed or the server refuses;
   * present only where such a stream must be requested. `onOpen` is called each time, with whether
   * something may have been missed.
   */
  listen?(onOpen: (mayHaveMissed: boolean) => void): Promise<void>;
  /** How busy the server has been so far, where the link started it. */
  progress?(): StartProgress;
  /**
   * Adds what the link knows about why connecting failed, such as a child's last words.
   * Returns the error to throw.
   */
  explain?(failure: unknown): Promise<unknown>;
  /** Resolves when the link is gone for good; never for HTTP, where each request stands alone. */
  readonly closed: Promise<ClosedError>;
}
