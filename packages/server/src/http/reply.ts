import { type Awaitable, type Clock, Quota } from "@junctor/core/async";
import { ClosedError, RpcError } from "@junctor/core/errors";
import { toOneLine, type RawJson, type WrittenJson } from "@junctor/core/json";
import type { HeaderLookup } from "@junctor/core/mcp";
import {
  type ErrorResponse,
  type Message,
  type RequestId,
  encodeMessage,
  toErrorBody,
} from "@junctor/core/rpc";
import type { ClientCertificate } from "./authenticate.ts";

/** A request without its body, from any runtime. */
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
  /** The address the request came from, where the runtime knows it. */
  readonly remoteAddress?: string | undefined;
  /** The certificate that the client proved to own, where the runtime asks for one. */
  readonly certificate?: ClientCertificate | undefined;
}

/** A whole body, or why there is none. */
export type Body = Uint8Array | "too_large" | "aborted";

/** An accepted request that needs its body: the listener reads the body, and calls `take` once. */
export interface WantedBody {
  readonly maxBytes: number;
  take(body: Body): Awaitable<void>;
}

/** The rest of the work for a request: to read its body, or nothing if it was answered. */
export type Routed = Awaitable<WantedBody | void>;

export type HttpHeaders = { readonly [name: string]: string };

/** Where the answer to one request goes. Exactly one of `send` and `stream` is called, once. */
export interface Reply {
  /** The caller, once it is known; for runtimes that limit the unread bytes of one caller. */
  caller?: string | undefined;
  /** Answers with a whole body, or none. */
  send(status: number, headers: HttpHeaders, body?: WrittenJson): void;
  /** Answers with a body that comes in pieces. Calls back when it has ended, was cut, or the client is gone. */
  stream(status: number, headers: HttpHeaders, onClosed: () => void): FrameSink;
  /** Calls back when the client hangs up before the answer is complete. At most one callback. */
  onHangUp(callback: () => void): void;
  /** Called when the request is refused before it is served; for runtimes that count refusals. */
  refused?(status: number, code: string): void;
}

/** The body of a streamed answer. */
export interface FrameSink {
  /**
   * Waits until the connection took the text, which is the backpressure; returns nothing if it did at once. Writes nothing when
   * the client is gone.
   */
  write(text: string): Awaitable<void>;
  end(): void;
  /** Ends it without a proper end, so that the client notices. */
  cut(reason: string): void;
  readonly isOpen: boolean;
}

/** Limits of a streamed answer, and of a whole answer that does not fit into the buffers of the system. */
export interface SinkLimits {
  /** The most bytes that wait for one client; one more frame and it is cut. */
  readonly maxBufferBytes: number;
  /** How long a client may take nothing while bytes wait for it. */
  readonly stallMs: number;
  /** Called with the reason when a client was cut. */
  readonly onCut: (reason: string) => void;
  /** Called for requests that were refused before they were served. */
  readonly onRefused?: ((status: number, code: string, caller: string | undefined) => void) | undefined;
  /** The bytes that wait for all clients together. */
  readonly unread?: Unread;
}

/** Which of the two kinds of answer a client accepts. */
export interface Accepted {
  readonly json: boolean;
  readonly sse: boolean;
}

const both: Accepted = { json: true, sse: true };

/** Reads an `Accept` header. Without one, a client takes anything. */
export function parseAccept(header: string | undefined): Accepted {
  if (header === undefined || header === "application/json, text/event-stream") return both;
  const wanted = new Map<string, boolean>();
  for (const range of header.split(",")) {
    const [type = "", ...parameters] = range.split(";").map((part) => part.trim().toLowerCase());
    const isWanted = !parameters.some((parameter) => /^q=0(?:\.0*)?$/.test(parameter));
    wanted.set(type, isWanted || wanted.get(type) === true);
  }
  const takes = (...ranges: readonly string[]): boolean => {
    // The most specific range decides (RFC 9110, 12.5.1): a refusal by name beats a wildcard.
    const named = ranges.find((range) => wanted.has(range));
    return named !== undefined && wanted.get(named) === true;
  };
  return {
    json: takes("application/json", "application/*", "*/*"),
    sse: takes("text/event-stream", "text/*", "*/*"),
  };
}

/** Whether a body is JSON by its `Content-Type`: the media type itself, not a substring of something else. */
export function isJson(contentType: string | undefined): boolean {
  if (contentType === "application/json") return true;
  return contentType?.split(";", 1)[0]?.trim().toLowerCase() === "application/json";
}

const jsonHeaders: HttpHeaders = { "content-type": "application/json" };
/** For statuses 429 and 503: the client may try again later. */
const retryHeaders: HttpHeaders = { ...jsonHeaders, "retry-after": "1" };

/** Answers with one JSON message. */
export function sendJson(
  reply: Reply,
  status: number,
  json: RawJson,
  headers: HttpHeaders = status < 429 ? jsonHeaders : retryHeaders,
): void {
  reply.send(status, headers, json.written);
}

/** The parts of an error answer besides its error. */
interface ErrorDetails {
  readonly id?: RequestId | undefined;
  readonly headers?: HttpHeaders;
}

/** Answers with an error instead of serving. */
export function sendError(reply: Reply, status: number, error: RpcError, details: ErrorDetails = {}): void {
  const { id, headers } = details;
  reply.refused?.(status, error.code);
  sendJson(reply, status, encodeMessage(toErrorResponse(error, id)), { ...jsonHeaders, ...headers });
}

/** Refuses a request with `-32600` and a text that says what to do. */
export function refuse(reply: Reply, status: number, text: string, details?: ErrorDetails): void {
  sendError(reply, status, new RpcError("rpc.invalid_request", text), details);
}

/** Refuses a caller without a valid key. `hasKey` says whether it sent one. */
export function refuseKey(reply: Reply, hasKey: boolean): void {
  const text = hasKey
    ? "This key is not valid here: send another in the header Authorization: Bearer KEY"
    : "Send a key in the header Authorization: Bearer KEY";
  refuse(reply, 401, text, { headers: { "www-authenticate": "Bearer" } });
}

/** Refuses a request that came after the endpoint began to stop. */
export function refuseStopping(reply: Reply, id?: RequestId): void {
  const { code, delivery } = new ClosedError("not_sent", "the server is stopping");
  const text = "The server is stopping; try again later, or elsewhere";
  const error = new RpcError("rpc.internal", text, { data: { code, delivery } });
  sendError(reply, 503, error, { id, headers: { "retry-after": "1" } });
}

export function toErrorResponse(error: RpcError, id: RequestId | undefined): ErrorResponse {
  return { kind: "error", id, error: toErrorBody(error) };
}

/** A message as the data of an event. */
export function toData(message: Message): string {
  return toOneLine(encodeMessage(message)).text;
}

/** One frame of an event stream. `data` is JSON, which has no raw line ends, so it is always a single line. */
export function toFrame(data: string, id?: string): string {
  return id === undefined
    ? `event: message\ndata: ${data}\n\n`
    : `event: message\nid: ${id}\ndata: ${data}\n\n`;
}

/**
 * The first frame of a stream that can be resumed (2025-11-25): an id to come back with, no data, and how long to wait
 * before doing so.
 */
export function toPrimingFrame(id: string, retryMs: number): string {
  return `id: ${id}\nretry: ${retryMs}\ndata: \n\n`;
}

/** Keeps a silent stream alive; readers ignore it. */
export const keepAliveFrame = ": keepalive\n\n";

/** The headers of every event stream. The last one keeps nginx from holding frames back. */
export const sseHeaders = {
  "content-type": "text/event-stream",
  "cache-control": "no-cache, no-transform",
  "x-accel-buffering": "no",
} as const;

/** An answer that did not fit into the buffers of the system, and its reader. */
export interface UnreadAnswer {
  /** The owner whose share it counts towards. */
  readonly owner: string | undefined;
  /** Bytes that wait for it now. */
  readonly waiting: () => number;
  /** Cuts the reader off. */
  readonly cut: (reason: string) => void;
}

interface UnreadOptions {
  readonly maxBytes: number;
  /** The most bytes for the readers of one owner that are behind. */
  readonly maxBytesEach: () => number;
  readonly clock: Clock;
}

interface Entry {
  readonly answer: UnreadAnswer;
  readonly since: number;
  bytes: number;
}

/** How long a reader may take for an answer before it counts as behind. Even one that keeps up may get much at once. */
const behindMs = 2000;

/**
 * The answers that readers have not taken, within a budget. Beyond the budget, readers of the owner with most bytes are cut off,
 * beginning with the one that is behind longest. So thousands of stalled readers take no more memory than a few.
 */
export class Unread {
  readonly #options: UnreadOptions;
  readonly #quota: Quota<string | undefined>;
  readonly #entries = new Map<UnreadAnswer, Entry>();

  constructor(options: UnreadOptions) {
    this.#options = options;
    this.#quota = new Quota({ what: "unread bytes", total: options.maxBytes });
  }

  /** Bytes that wait for all readers, as of the last measurements. */
  get bytes(): number {
    return this.#quota.held;
  }

  /** Counts the bytes that wait for a reader. Call it again when there are more. */
  note(answer: UnreadAnswer): void {
    let entry = this.#entries.get(answer);
    if (entry === undefined) {
      entry = { answer, since: this.#options.clock.now(), bytes: 0 };
      this.#entries.set(answer, entry);
    }
    this.#measure(entry);
    const { owner } = answer;
    const { maxBytes } = this.#options;
    const maxBytesEach = this.#options.maxBytesEach();
    if (this.#quota.held <= maxBytes && this.#quota.heldBy(owner) <= maxBytesEach) return;
    for (const other of this.#entries.values()) this.#measure(other);
    const behind = this.#options.clock.now() - behindMs;
    this.#cutWhile(() => this.#quota.heldBy(owner) > maxBytesEach, { owner, before: behind });
    this.shrink(maxBytes);
  }

  delete(answer: UnreadAnswer): void {
    const entry = this.#entries.get(answer);
    if (entry === undefined) return;
    this.#entries.delete(answer);
    this.#quota.give(answer.owner, entry.bytes);
  }

  /** Cuts readers until at most this many bytes wait. */
  shrink(maxBytes: number): void {
    while (this.#quota.held > maxBytes) {
      const owner = this.#quota.greediest();
      const held = this.#quota.held;
      this.#cutWhile(() => this.#quota.held === held, { owner, before: Infinity });
      if (this.#quota.held === held) return;
    }
  }

  #cutWhile(isOver: () => boolean, { owner, before }: { owner: string | undefined; before: number }): void {
    for (const { answer, since } of this.#entries.values()) {
      if (since > before || !isOver()) return;
      if (answer.owner !== owner) continue;
      this.delete(answer);
      answer.cut(`its readers leave ${this.#quota.heldBy(owner)} bytes unread`);
    }
  }

  #measure(entry: Entry): void {
    const bytes = entry.answer.waiting();
    this.#quota.add(entry.answer.owner, bytes - entry.bytes);
    entry.bytes = bytes;
  }
}
