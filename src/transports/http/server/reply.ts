import type { Awaitable } from "../../../async/awaitable.ts";
import type { HeaderLookup } from "../../../mcp/era.ts";

/** A request, whatever runtime it came by. */
export interface HttpRequest {
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly header: HeaderLookup;
  /** How many `Host` headers there are; more than one is an attack. */
  readonly hostCount: number;
  /** The port the request came in on, where the runtime knows it. */
  readonly localPort: number | undefined;
  /** Hands over the whole body, or why there is none; what that returns is waited for where somebody waits. */
  readBody(maxBytes: number, take: (body: Body) => Awaitable<void>): Awaitable<void>;
}

/** A body that came whole, or why there is none. */
export type Body = Uint8Array | "too_large" | "aborted";

export type HttpHeaders = { readonly [name: string]: string };

/** A whole body: text, or bytes in one or several pieces. */
export type ReplyBody = string | readonly Uint8Array[];

/** Where the answer to one request goes. Exactly one of `send` and `stream` is called, once. */
export interface Reply {
  /** Answers with a whole body, or none. */
  send(status: number, headers: HttpHeaders, body?: ReplyBody): void;
  /** Answers with a body that comes in pieces. Calls back when it ended, was cut, or the client is gone. */
  stream(status: number, headers: HttpHeaders, onClosed: () => void): FrameSink;
  /** Calls back when the client hangs up before the answer is complete. At most one callback. */
  onHangUp(callback: () => void): void;
}

/** The body of a streamed answer. */
export interface FrameSink {
  /**
   * Waits until the client's side of the connection took it, which is the backpressure; gives back nothing when it did at
   * once, and writes nothing when the client is gone.
   */
  write(text: string): Awaitable<void>;
  end(): void;
  /** Ends it without a proper end, so that the client notices. */
  cut(reason: string): void;
  readonly isOpen: boolean;
}
