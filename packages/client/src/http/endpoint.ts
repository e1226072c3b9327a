import type { IncomingHttpHeaders } from "node:http";
import { type Clock, systemClock, Numbered, isPromise, type Cancellation } from "@junctor/core/async";
import { ClosedError } from "@junctor/core/errors";
import type { RawJson } from "@junctor/core/json";
import { type LinkEvents, type LinkMode, sessionHeader } from "@junctor/core/mcp";
import { type Dispatcher, Pool } from "undici/index.js";
import { type Authorizer, parseChallenge } from "../sign-in/index.ts";
import {
  type Exchange,
  exchange,
  type OutgoingRequest,
  type ReplySink,
  toTarget,
  WholeReply,
} from "./exchange.ts";

/** Headers to send with every request; a function is called each time, so that tokens can be renewed. */
export type HeaderSource =
  | { readonly [name: string]: string }
  | (() => Promise<{ readonly [name: string]: string }>);

export interface HttpLinkOptions {
  readonly events: LinkEvents;
  readonly headers?: HeaderSource | undefined;
  /** Gives requests their token. */
  readonly authorizer?: Authorizer | undefined;
  /** The most bytes of one answer or event. */
  readonly maxResponseBytes?: number | undefined;
  readonly clock?: Clock | undefined;
  readonly onWarning?: ((text: string) => void) | undefined;
}

/** Header names and values, alternating. */
export type HeaderPairs = readonly string[];

/** One request to the endpoint, without the headers that all requests have. */
interface EndpointRequest extends Pick<OutgoingRequest, "method" | "stop" | "onSent"> {
  readonly body?: RawJson;
  readonly headers?: HeaderPairs;
  /** Whether it uses connections of its own, because calls may be waiting for it. */
  readonly isExpress?: boolean;
}

/** The most calls underway at one server. A call that waits for an answer holds its connection. */
const maxConnections = 4096;

/** Where the requests of a client go, with which headers, in which session. */
export class HttpEndpoint implements AsyncDisposable {
  readonly url: URL;
  readonly target: string;
  readonly clock: Clock;
  /** Whether the server no longer knows the session, so that there is nothing to delete. */
  isSessionOver = false;
  readonly #source: HeaderSource;
  readonly #authorizer: Authorizer | undefined;
  readonly #to: OutgoingRequest["to"];
  readonly #usualPool: Pool;
  /** For answers and cancellations, which must get through while any number of calls wait for them. */
  readonly #expressPool: Pool;
  readonly #underway = new Numbered<Exchange>();
  readonly #shared: Parameters<typeof exchange>[3];
  #mode: LinkMode = { kind: "legacy", revision: undefined };
  #session: string | undefined;
  #closed: ClosedError | undefined;
  /** Headers of each method that are the same until the mode or the session changes. */
  #usual: { readonly [Method in OutgoingRequest["method"]]: HeaderPairs };

  constructor(url: URL, options: Pick<HttpLinkOptions, "headers" | "authorizer" | "clock">) {
    const { headers = {}, authorizer, clock = systemClock } = options;
    this.url = url;
    this.target = `${url.origin}${url.pathname}`;
    this.clock = clock;
    this.#source = headers;
    this.#authorizer = authorizer;
    this.#to = toTarget(url);
    this.#usualPool = new Pool(url.origin, { connections: maxConnections, pipelining: 1 });
    this.#expressPool = new Pool(url.origin, { connections: 16, pipelining: 1 });
    this.#shared = { clock, underway: this.#underway };
    this.#usual = this.#toUsualHeaders();
  }

  get mode(): LinkMode {
    return this.#mode;
  }

  set mode(settled: LinkMode) {
    this.#mode = settled;
    if (settled.kind === "modern") this.#session = undefined;
    this.#usual = this.#toUsualHeaders();
  }

  get session(): string | undefined {
    return this.#session;
  }

  set session(begun: string | undefined) {
    this.#session = begun;
    this.#usual = this.#toUsualHeaders();
  }

  /** Resolves when the sink has all it wants, or the response has ended. */
  send(sink: ReplySink, request: EndpointRequest): Promise<void> {
    const authorizer = this.#authorizer;
    if (authorizer === undefined) return this.#sendOnce(sink, request);
    const { headers = [], stop } = request;
    const send = (token: HeaderPairs, reply: ReplySink): Promise<void> =>
      this.#sendOnce(reply, token.length === 0 ? request : { ...request, headers: [...headers, ...token] });
    return sendAuthorized({ authorizer, send, sink, stop });
  }

  /** Sends nothing more, and fails the requests that are underway. */
  close(): void {
    this.#closed ??= new ClosedError("not_sent", "the client is closed");
    const reason = new ClosedError("outcome_unknown", "the client was closed");
    for (const request of this.#underway.values()) request.abort(reason);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
    await Promise.all([this.#usualPool.destroy(), this.#expressPool.destroy()]);
  }

  #sendOnce(sink: ReplySink, request: EndpointRequest): Promise<void> {
    const own = request.headers ?? [];
    const source = this.#source;
    if (typeof source !== "function")
      return this.#begin([...this.#usual[request.method], ...own], sink, request);
    return source().then((dynamic) =>
      this.#begin([...Object.entries(dynamic).flat(), ...this.#usual[request.method], ...own], sink, request),
    );
  }

  #begin(headers: string[], sink: ReplySink, request: EndpointRequest): Promise<void> {
    const { method, body, stop, onSent, isExpress = false } = request;
    if (this.#closed !== undefined && method !== "DELETE") return Promise.reject(this.#closed);
    const written = body === undefined || typeof body.written !== "string" ? body?.bytes : body.written;
    const dispatcher: Dispatcher = isExpress ? this.#expressPool : this.#usualPool;
    const outgoing = { to: this.#to, method, headers, body: written, stop, onSent };
    return exchange(dispatcher, outgoing, sink, this.#shared);
  }

  #toUsualHeaders(): { readonly [Method in OutgoingRequest["method"]]: HeaderPairs } {
    const { revision } = this.#mode;
    const all = [
      ...(typeof this.#source === "function" ? [] : Object.entries(this.#source).flat()),
      ...(revision === undefined ? [] : ["mcp-protocol-version", revision]),
      ...(this.#session === undefined ? [] : [sessionHeader, this.#session]),
    ];
    return { POST: [...all, ...postHeaders], GET: [...all, "accept", "text/event-stream"], DELETE: all };
  }
}

const postHeaders: HeaderPairs = [
  "content-type",
  "application/json",
  "accept",
  "application/json, text/event-stream",
];

/** The most bytes of the body of a refusal. */
const maxRefusalBytes = 64 * 1024;

/** How often a request is sent again with another token: once for a token renewed meanwhile, once for our own renewal. */
const maxRetries = 2;

/** Sends a request once, with these headers besides its own. */
type SendOnce = (headers: readonly string[], sink: ReplySink) => Promise<void>;

/** One request that is sent with a token. */
interface AuthorizedRequest {
  readonly authorizer: Authorizer;
  readonly send: SendOnce;
  readonly sink: ReplySink;
  readonly stop: Cancellation | undefined;
}

/**
 * Sends a request with the token of an authorizer, and again with another token if the server refuses it, because it was not carried
 * out then. The sink sees the last answer only. Rejects with an `AuthorizationError` when a person must sign in. Most requests succeed
 * at the first try, with a known token or without one, so that path has no `async` function.
 */
export function sendAuthorized(request: AuthorizedRequest, retries = 0): Promise<void> {
  const token = request.authorizer.token();
  return isPromise(token)
    ? token.then((known) => sendWith(known, request, retries))
    : sendWith(token, request, retries);
}

function sendWith(token: string | undefined, request: AuthorizedRequest, retries: number): Promise<void> {
  const reply = new RefusableReply(request.sink);
  const headers = token === undefined ? noHeaders : ["authorization", `Bearer ${token}`];
  return request
    .send(headers, reply)
    .then(() =>
      reply.refusal === undefined ? undefined : sendAgain(token, reply.refusal, request, retries),
    );
}

const noHeaders: readonly string[] = [];

async function sendAgain(
  token: string | undefined,
  refusal: WholeReply,
  request: AuthorizedRequest,
  retries: number,
): Promise<void> {
  const { authorizer, sink, stop } = request;
  const challenge = parseChallenge(refusal.status, refusal.headers["www-authenticate"]);
  const isOver = challenge === undefined || retries === maxRetries;
  const refused = { token, isRetry: retries > 0, signal: stop?.signal };
  if (!isOver && (await authorizer.refused(challenge, refused))) return sendAuthorized(request, retries + 1);
  sink.head(refusal.status, refusal.headers);
  await sink.chunk(refusal.body);
}

/** Holds a refusal back from the sink, which may still get a better answer. */
class RefusableReply implements ReplySink {
  refusal: WholeReply | undefined;
  readonly #sink: ReplySink;

  constructor(sink: ReplySink) {
    this.#sink = sink;
  }

  head(status: number, headers: IncomingHttpHeaders): void {
    if (status !== 401 && status !== 403) return this.#sink.head(status, headers);
    this.refusal = new WholeReply(maxRefusalBytes);
    this.refusal.head(status, headers);
  }

  chunk(bytes: Uint8Array): boolean | Promise<void> {
    return (this.refusal ?? this.#sink).chunk(bytes);
  }
}
