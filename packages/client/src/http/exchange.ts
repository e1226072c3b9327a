import { Buffer } from "node:buffer";
import type { IncomingHttpHeaders } from "node:http";
import { type Cancellation, type Clock, systemClock, type Numbered } from "@junctor/core/async";
import { ClosedError, failureCodeOf, systemCodeOf, HttpError, RpcError } from "@junctor/core/errors";
import { Pieced, minPiecedBytes } from "@junctor/core/json";
import { messageShape } from "@junctor/core/mcp";
import { type Incoming, parseMessage, parsePieced } from "@junctor/core/rpc";
import { type Dispatcher, errors as undiciErrors } from "undici/index.js";

/** Where requests go. Taking a URL apart for each of them would cost more than a small answer takes to read. */
interface HttpTarget {
  readonly url: URL;
  readonly origin: string;
  readonly path: string;
}

export function toTarget(url: URL): HttpTarget {
  return { url, origin: url.origin, path: `${url.pathname}${url.search}` };
}

/** One HTTP request of a client. Header names and values alternate. */
export interface OutgoingRequest {
  readonly to: HttpTarget;
  readonly method: "POST" | "GET" | "DELETE";
  readonly headers: string[];
  readonly body?: string | Uint8Array | undefined;
  readonly stop?: Cancellation | undefined;
  /** Called when the first byte is about to leave; until then the request was not sent. */
  readonly onSent?: (() => void) | undefined;
}

/** Takes a response as it comes, without a stream in between. If it throws, the exchange ends with that error. */
export interface ReplySink {
  head(status: number, headers: IncomingHttpHeaders): void;
  /**
   * Returns true when it wants nothing more: the exchange is over then, whatever else comes. A promise stops reading until it
   * resolves; then this is called once more, without bytes.
   */
  chunk(bytes: Uint8Array): boolean | Promise<void>;
}

/** Limits on the rest of a response whose beginning was enough. Beyond them its socket is closed. */
const restMs = 1000;
const maxRestBytes = 64 * 1024;

/** The most interim responses (1xx). */
const maxInterim = 16;

/** What the exchanges of one client share. */
interface SharedByExchanges {
  readonly clock: Clock;
  /** The exchanges that are not over. */
  readonly underway?: Numbered<Exchange>;
}

/**
 * Makes a request. Resolves when the sink has all it wants or the response has ended. Rejects with a `ClosedError`, with
 * the error that the sink threw, or with the reason of the abort.
 */
export function exchange(
  dispatcher: Dispatcher,
  request: OutgoingRequest,
  sink: ReplySink,
  shared: SharedByExchanges = { clock: systemClock },
): Promise<void> {
  return new Promise((resolve, reject) => {
    const { to, method, headers, body = null, stop } = request;
    const giveUp = (): void => begun.abort(stop?.reason);
    let isOver = false;
    let number = 0;
    const onOver = (): void => {
      isOver = true;
      stop?.offAbort(giveUp);
      shared.underway?.delete(number);
    };
    const begun = new Exchange({ request, sink, clock: shared.clock, resolve, reject, onOver });
    if (stop?.isAborted === true) return giveUp();
    stop?.onAbort(giveUp);
    try {
      // Deadlines are the caller's; a silent stream is not a dead one.
      const times = { headersTimeout: 0, bodyTimeout: 0 };
      dispatcher.dispatch({ origin: to.origin, path: to.path, method, headers, body, ...times }, begun);
    } catch (error) {
      begun.onResponseError(undefined, error as Error);
    }
    if (!isOver) number = shared.underway?.add(begun) ?? 0;
  });
}

interface ExchangeParts {
  readonly request: OutgoingRequest;
  readonly sink: ReplySink;
  readonly clock: Clock;
  readonly resolve: () => void;
  readonly reject: (reason: unknown) => void;
  /** Called when the exchange is over. */
  readonly onOver: () => void;
}

/**
 * One request and its response, directly on undici's dispatcher: the streams of its higher functions cost more than everything
 * else about a small call. Redirects are not followed: the headers may hold credentials.
 */
export class Exchange implements Dispatcher.DispatchHandler {
  readonly #parts: ExchangeParts;
  /** Set once the request was sent. */
  #controller: Dispatcher.DispatchController | undefined;
  /** `held`: the sink takes no bytes for a while. `over`: the rest of the response is dropped. */
  #state: "open" | "held" | "over" = "open";
  #stopRest: (() => void) | undefined;
  /** Counts interim responses, and later the bytes that come when the exchange is over. */
  #excess = 0;
  readonly #kept = new KeptPart();

  constructor(parts: ExchangeParts) {
    this.#parts = parts;
  }

  /** Ends it with this error; closes the socket if the response has not ended. */
  abort(reason: unknown): void {
    this.#over();
    this.#parts.reject(reason);
    this.#controller?.abort(toError(reason));
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    const { stop, onSent } = this.#parts.request;
    this.#controller = controller;
    if (this.#state === "over") return controller.abort(toError(stop?.reason));
    onSent?.();
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: IncomingHttpHeaders,
  ): void {
    if (this.#state === "over") return;
    if (status < 200) {
      if (++this.#excess > maxInterim) controller.abort(new Error("too many interim responses"));
      return;
    }
    this.#excess = 0;
    try {
      this.#parts.sink.head(status, headers);
    } catch (error) {
      this.abort(error);
    }
  }

  onResponseData(controller: Dispatcher.DispatchController, bytes: Uint8Array): void {
    if (this.#state === "over") {
      // The rest is thrown away, so that the socket can be used again.
      this.#excess += bytes.length;
      if (this.#excess > maxRestBytes) controller.abort(toError(undefined));
      return;
    }
    if (this.#state === "held") {
      if (this.#kept.add(bytes)) controller.pause();
      return;
    }
    const { sink, clock, resolve } = this.#parts;
    try {
      const taken = sink.chunk(bytes);
      if (taken === false) return;
      if (taken !== true) return this.#hold(controller, taken);
    } catch (error) {
      return this.abort(error);
    }
    this.#over();
    resolve();
    this.#stopRest = clock.timer(restMs, () => controller.abort(toError(undefined)));
  }

  onResponseEnd(): void {
    if (this.#state === "held") {
      this.#kept.end = () => this.onResponseEnd();
      return;
    }
    this.#stopRest?.();
    this.#over();
    this.#parts.resolve();
  }

  onResponseError(controller: Dispatcher.DispatchController | undefined, error: Error): void {
    this.#stopRest?.();
    if (this.#state === "over") return;
    if (this.#state === "held") {
      this.#kept.end = () => this.onResponseError(controller, error);
      return;
    }
    this.#over();
    this.#parts.reject(toClosed(error, this.#parts.request.to.url, this.#controller !== undefined));
  }

  /** Gives the sink nothing until `ready` resolves. The end of the response, if it comes meanwhile, waits too. */
  #hold(controller: Dispatcher.DispatchController, ready: Promise<void>): void {
    this.#state = "held";
    const isHeld = (): boolean => this.#state === "held";
    void ready.then(() => {
      if (!isHeld()) return;
      this.#state = "open";
      // The sink may have more to do with the bytes that it took last.
      this.onResponseData(controller, noBytes);
      const bytes = isHeld() ? noBytes : this.#kept.take();
      if (bytes.length > 0) this.onResponseData(controller, bytes);
      if (isHeld()) return;
      if (this.#kept.end === undefined) controller.resume();
      else this.#kept.end();
    });
  }

  #over(): void {
    if (this.#state === "over") return;
    this.#state = "over";
    this.#parts.onOver();
  }
}

function toError(reason: unknown): Error {
  return reason instanceof Error ? reason : new DOMException("The request was given up", "AbortError");
}

/** The media type of a response. */
export function mediaTypeOf(headers: IncomingHttpHeaders): string {
  const value = headers["content-type"] ?? "";
  const end = value.indexOf(";");
  return (end === -1 ? value : value.slice(0, end)).trim().toLowerCase();
}

/** The error for a request that a failure of the network ended. */
function toClosed(error: unknown, url: URL, isSent: boolean): ClosedError {
  const reason = `${url.origin}: ${describe(error)}`;
  return new ClosedError(isSent ? "outcome_unknown" : "not_sent", reason, { cause: error });
}

/** Whether the connection was refused. */
export function isRefused(error: unknown): boolean {
  if (error instanceof ClosedError) return isRefused(error.cause);
  if (error instanceof AggregateError) return error.errors.every(isRefused);
  return (error as { code?: unknown } | undefined)?.code === "ECONNREFUSED";
}

function describe(error: unknown): string {
  if (isRefused(error)) return "nothing listens there (connection refused)";
  if (error instanceof undiciErrors.SocketError) return "the connection was closed";
  // OpenSSL's messages have line ends and name its source files.
  if (failureCodeOf(error) === "no_tls") return `it does not speak TLS (${systemCodeOf(error)})`;
  if (error instanceof Error && error.message !== "") return error.message;
  return String((error as { code?: unknown } | undefined)?.code ?? error);
}

/** The error for a status that is not an answer, with the beginning of the body. */
export function httpErrorOf(status: number, url: URL, body: Uint8Array): HttpError {
  const text = Buffer.from(body).toString("utf8").replaceAll(/\s+/g, " ").trim();
  // The beginning of a web page says nothing.
  const excerpt = /^<(?:!doctype|html|\?xml)/i.test(text) ? "" : text.slice(0, 200);
  return new HttpError(status, `${url.origin}${url.pathname}`, excerpt);
}

/**
 * How much of a response is kept here while the sink takes nothing, before its socket is paused. Whenever a socket is resumed, undici
 * copies all that waits on it and reads 64 KiB more. If the socket were paused and resumed for each chunk, a server that sends
 * each event as a chunk would make undici hold more and more.
 */
const maxKeptBytes = 128 * 1024;

/** What a chunk costs besides its bytes. */
const chunkBytes = 64;

const noBytes: Uint8Array = new Uint8Array(0);

/** The part of a response that came while its sink took nothing. */
class KeptPart {
  #chunks: Uint8Array[] = [];
  #size = 0;
  /** Ends the response; set if its end came too. */
  end: (() => void) | undefined;

  /** True when the socket is to be paused. */
  add(bytes: Uint8Array): boolean {
    this.#chunks.push(bytes);
    this.#size += bytes.length + chunkBytes;
    return this.#size >= maxKeptBytes;
  }

  take(): Uint8Array {
    const chunks = this.#chunks;
    this.#chunks = [];
    this.#size = 0;
    return chunks.length === 0 ? noBytes : Buffer.concat(chunks);
  }
}

/** A response that was read to its end. */
export class WholeReply implements ReplySink {
  status = 0;
  headers: IncomingHttpHeaders = {};
  readonly #maxBytes: number;
  readonly #chunks: Uint8Array[] = [];
  #length = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  head(status: number, headers: IncomingHttpHeaders): void {
    this.status = status;
    this.headers = headers;
  }

  chunk(bytes: Uint8Array): boolean {
    this.#length += bytes.length;
    if (this.#length > this.#maxBytes)
      throw new RpcError("rpc.other", `The server answered with more than ${this.#maxBytes} bytes`);
    this.#chunks.push(bytes);
    return false;
  }

  /** The body as a message. A large one is parsed in the pieces it came in. */
  parse(): Incoming {
    const options = { shape: messageShape };
    return this.#length < minPiecedBytes
      ? parseMessage(this.body, options)
      : parsePieced(new Pieced(this.#chunks), options);
  }

  get body(): Uint8Array {
    const [only] = this.#chunks;
    return this.#chunks.length === 1 && only !== undefined ? only : Buffer.concat(this.#chunks);
  }
}
