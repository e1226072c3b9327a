import type { Cancellation } from "../async/index.ts";
import type { ClosedError } from "../errors/index.ts";
import type { RawJson } from "../json/index.ts";
import type { Notification, Request } from "../rpc/index.ts";

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
  /** Called when the request is about to leave. After a failure before that, the server has got nothing. */
  readonly onSent?: (() => void) | undefined;
  /** An id outside the usual count, for probes whose answer may come too late. */
  readonly id?: string | undefined;
}

/** How the other side talks; settled before the first request that is not a probe. */
export type LinkMode =
  | { readonly kind: "modern"; readonly revision: string }
  | { readonly kind: "legacy"; readonly revision: string | undefined };

/** How busy a server that is being started was so far. Both figures grow while it works. */
export interface StartProgress {
  /** What it wrote to its standard error stream. */
  readonly stderrBytes: number;
  /** The processor time that it and its descendants used; 0 where that is not known. */
  readonly processorMs: number;
}

/**
 * A way to one server: the client's mirror of `Server`. Every failure says whether the request was `not_sent` or its
 * `outcome_unknown`. Disposing it closes the way and, if it started a process, ends that.
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
   * Keeps a legacy server's own stream open until the link is disposed or the server refuses; there only where such a
   * stream must be asked for. `onOpen` is told each time whether something may have been missed.
   */
  listen?(onOpen: (mayHaveMissed: boolean) => void): Promise<void>;
  /** How busy the server was so far, where the link started it. */
  progress?(): StartProgress;
  /** What the link knows about why connecting failed: a child's last words. Gives back the error to throw. */
  explain?(failure: unknown): Promise<unknown>;
  /** Resolves when the link is gone for good; never for HTTP, where each request stands alone. */
  readonly closed: Promise<ClosedError>;
}
