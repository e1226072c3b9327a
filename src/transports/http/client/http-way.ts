import { type Dispatcher, Pool } from "undici";
import { type Clock, systemClock } from "../../../async/clock.ts";
import { Numbered } from "../../../async/numbered.ts";
import { ClosedError } from "../../../errors/closed-error.ts";
import type { RawJson } from "../../../json/raw.ts";
import type { LinkEvents, LinkMode } from "../../../mcp/link.ts";
import { sessionHeader } from "../../../mcp/session.ts";
import { Exchange, type OutgoingRequest, type HttpTarget, type ReplySink, toTarget } from "./exchange.ts";

/** Headers to send with every request; a function is asked each time, so that tokens can be renewed. */
export type HeaderSource =
  | { readonly [name: string]: string }
  | (() => Promise<{ readonly [name: string]: string }>);

export interface HttpLinkOptions {
  readonly events: LinkEvents;
  readonly headers?: HeaderSource | undefined;
  /** Most bytes of one answer or event. */
  readonly maxResponseBytes?: number | undefined;
  readonly dispatcher?: Dispatcher | undefined;
  readonly clock?: Clock | undefined;
  readonly onWarning?: ((text: string) => void) | undefined;
}

/** Header names and values in turns. */
export type HeaderPairs = readonly string[];

/** What one request adds to the usual. */
type Extras = Pick<OutgoingRequest, "stop" | "onSent"> & {
  readonly headers?: HeaderPairs;
  /** It does not queue behind calls, which may be waiting for it. */
  readonly isExpress?: boolean;
};

/** As many calls as one server may have underway. A call that waits for an answer holds its connection. */
const maxConnections = 4096;

/** The way requests go to one endpoint: where, with which headers, in which session. */
export class HttpWay implements AsyncDisposable {
  readonly url: URL;
  readonly target: string;
  readonly clock: Clock;
  readonly #to: HttpTarget;
  readonly #dispatcher: Dispatcher;
  /** For what must get through while any number of calls wait for it: answers and cancellations. */
  readonly #express: Dispatcher;
  readonly #ownsDispatcher: boolean;
  readonly #source: HeaderSource;
  readonly #open = new Numbered<Exchange>();
  #mode: LinkMode = { kind: "legacy", revision: undefined };
  #session: string | undefined;
  #closed: ClosedError | undefined;
  /** Headers that are the same until the mode or the session changes. */
  #usual: HeaderPairs = none;
  #usualPost: HeaderPairs = none;

  constructor(url: URL, { headers = {}, dispatcher, clock = systemClock }: Omit<HttpLinkOptions, "events">) {
    this.url = url;
    this.#to = toTarget(url);
    this.target = `${url.origin}${url.pathname}`;
    this.clock = clock;
    this.#source = headers;
    this.#ownsDispatcher = dispatcher === undefined;
    this.#dispatcher = dispatcher ?? new Pool(url.origin, { connections: maxConnections, pipelining: 1 });
    this.#express = dispatcher ?? new Pool(url.origin, { connections: 16, pipelining: 1 });
    this.#settleHeaders();
  }

  get mode(): LinkMode {
    return this.#mode;
  }

  set mode(mode: LinkMode) {
    this.#mode = mode;
    if (mode.kind === "modern") this.#session = undefined;
    this.#settleHeaders();
  }

  get session(): string | undefined {
    return this.#session;
  }

  set session(session: string | undefined) {
    this.#session = session;
    this.#settleHeaders();
  }

  /** The server no longer knows the session: there is nothing to take leave of. */
  isSessionOver = false;

  post(body: RawJson, sink: ReplySink, extras: Extras): Promise<void> {
    const bytes = typeof body.written === "string" ? body.written : body.bytes;
    return this.#send("POST", this.#usualPost, bytes, sink, extras);
  }

  get(sink: ReplySink, extras: Extras): Promise<void> {
    return this.#send("GET", [...this.#usual, "accept", "text/event-stream"], undefined, sink, extras);
  }

  delete(sink: ReplySink, extras: Extras): Promise<void> {
    return this.#send("DELETE", this.#usual, undefined, sink, extras);
  }

  /** Nothing more is sent, and what is underway fails. */
  close(): void {
    this.#closed ??= new ClosedError("not_sent", "the client is closed");
    const reason = new ClosedError("outcome_unknown", "the client was closed");
    for (const exchange of this.#open.values()) exchange.abort(reason);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
    if (this.#ownsDispatcher) await Promise.all([this.#dispatcher.destroy(), this.#express.destroy()]);
  }

  #send(
    method: OutgoingRequest["method"],
    usual: HeaderPairs,
    body: string | Uint8Array | undefined,
    sink: ReplySink,
    extras: Extras,
  ): Promise<void> {
    const own = extras.headers ?? none;
    if (typeof this.#source !== "function")
      return this.#exchange(method, [...usual, ...own], body, sink, extras);
    return this.#source().then((given) =>
      this.#exchange(method, [...toPairs(given), ...usual, ...own], body, sink, extras),
    );
  }

  #exchange(
    method: OutgoingRequest["method"],
    headers: string[],
    body: string | Uint8Array | undefined,
    sink: ReplySink,
    { stop, onSent, isExpress = false }: Extras,
  ): Promise<void> {
    if (this.#closed !== undefined && method !== "DELETE") return Promise.reject(this.#closed);
    const request: OutgoingRequest = { to: this.#to, method, headers, body, stop, onSent };
    const dispatcher = isExpress ? this.#express : this.#dispatcher;
    const exchange = new Exchange(dispatcher, request, sink, this.clock, this.#forget);
    if (!exchange.isOver) exchange.number = this.#open.add(exchange);
    return exchange.ended;
  }

  readonly #forget = (exchange: Exchange): void => void this.#open.delete(exchange.number);

  #settleHeaders(): void {
    const { revision } = this.#mode;
    this.#usual = [
      ...(typeof this.#source === "function" ? [] : toPairs(this.#source)),
      ...(revision === undefined ? [] : ["mcp-protocol-version", revision]),
      ...(this.#session === undefined ? [] : [sessionHeader, this.#session]),
    ];
    this.#usualPost = [...this.#usual, ...postHeaders];
  }
}

const none: HeaderPairs = [];

const postHeaders: HeaderPairs = [
  "content-type",
  "application/json",
  "accept",
  "application/json, text/event-stream",
];

function toPairs(headers: { readonly [name: string]: string }): HeaderPairs {
  return Object.entries(headers).flat();
}
