import { type Clock, systemClock, Numbered } from "@junctor/core/async";
import { ClosedError } from "@junctor/core/errors";
import type { RawJson } from "@junctor/core/json";
import { type LinkEvents, type LinkMode, sessionHeader } from "@junctor/core/mcp";
import { type Dispatcher, Pool } from "undici";
import type { Authorizer } from "../sign-in/index.ts";
import { sendAuthorized } from "./authorized-send.ts";
import { type Exchange, exchange, type OutgoingRequest, type ReplySink, toTarget } from "./exchange.ts";

/** Headers to send with every request; a function is asked each time, so that tokens can be renewed. */
export type HeaderSource =
  | { readonly [name: string]: string }
  | (() => Promise<{ readonly [name: string]: string }>);

export interface HttpLinkOptions {
  readonly events: LinkEvents;
  readonly headers?: HeaderSource | undefined;
  /** Gives requests their token. */
  readonly authorizer?: Authorizer | undefined;
  /** Most bytes of one answer or event. */
  readonly maxResponseBytes?: number | undefined;
  readonly clock?: Clock | undefined;
  readonly onWarning?: ((text: string) => void) | undefined;
}

/** Header names and values in turns. */
export type HeaderPairs = readonly string[];

/** One request to the endpoint, without the headers that all requests have. */
interface EndpointRequest extends Pick<OutgoingRequest, "method" | "stop" | "onSent"> {
  readonly body?: RawJson;
  readonly headers?: HeaderPairs;
  /** It does not queue behind calls, which may be waiting for it. */
  readonly isExpress?: boolean;
}

/** As many calls as one server may have underway. A call that waits for an answer holds its connection. */
const maxConnections = 4096;

/** Where the requests of a client go, with which headers, in which session. */
export class HttpEndpoint implements AsyncDisposable {
  readonly url: URL;
  readonly target: string;
  readonly clock: Clock;
  /** The server no longer knows the session: there is nothing to take leave of. */
  isSessionOver = false;
  readonly #source: HeaderSource;
  readonly #authorizer: Authorizer | undefined;
  readonly #to: OutgoingRequest["to"];
  readonly #usualPool: Pool;
  /** For what must get through while any number of calls wait for it: answers and cancellations. */
  readonly #expressPool: Pool;
  readonly #underway = new Numbered<Exchange>();
  readonly #terms: Parameters<typeof exchange>[3];
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
    this.#terms = { clock, underway: this.#underway };
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

  /** Resolves when the sink has what it wants or the response has ended. */
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
    for (const each of this.#underway.values()) each.abort(reason);
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
    return source().then((given) =>
      this.#begin([...Object.entries(given).flat(), ...this.#usual[request.method], ...own], sink, request),
    );
  }

  #begin(headers: string[], sink: ReplySink, request: EndpointRequest): Promise<void> {
    const { method, body, stop, onSent, isExpress = false } = request;
    if (this.#closed !== undefined && method !== "DELETE") return Promise.reject(this.#closed);
    const written = body === undefined || typeof body.written !== "string" ? body?.bytes : body.written;
    const dispatcher: Dispatcher = isExpress ? this.#expressPool : this.#usualPool;
    const outgoing = { to: this.#to, method, headers, body: written, stop, onSent };
    return exchange(dispatcher, outgoing, sink, this.#terms);
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
