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
interface WayRequest extends Pick<OutgoingRequest, "method" | "stop" | "onSent"> {
  readonly body?: RawJson;
  readonly headers?: HeaderPairs;
  /** It does not queue behind calls, which may be waiting for it. */
  readonly isExpress?: boolean;
}

/** As many calls as one server may have underway. A call that waits for an answer holds its connection. */
const maxConnections = 4096;

/** The way requests go to one endpoint: where, with which headers, in which session. */
export interface HttpWay extends AsyncDisposable {
  readonly url: URL;
  readonly target: string;
  readonly clock: Clock;
  mode: LinkMode;
  session: string | undefined;
  /** The server no longer knows the session: there is nothing to take leave of. */
  isSessionOver: boolean;
  /** Resolves when the sink has what it wants or the response has ended. */
  send(sink: ReplySink, request: WayRequest): Promise<void>;
  /** Sends nothing more, and fails the requests that are underway. */
  close(): void;
}

export function createHttpWay(
  url: URL,
  options: Pick<HttpLinkOptions, "headers" | "authorizer" | "clock">,
): HttpWay {
  const { headers: source = {}, authorizer, clock = systemClock } = options;
  const to = toTarget(url);
  const usualPool = new Pool(url.origin, { connections: maxConnections, pipelining: 1 });
  /** For what must get through while any number of calls wait for it: answers and cancellations. */
  const expressPool = new Pool(url.origin, { connections: 16, pipelining: 1 });
  const underway = new Numbered<Exchange>();
  const terms = { clock, underway };
  let mode: LinkMode = { kind: "legacy", revision: undefined };
  let session: string | undefined;
  let closed: ClosedError | undefined;
  /** Headers of each method that are the same until the mode or the session changes. */
  let usual: { readonly [Method in OutgoingRequest["method"]]: HeaderPairs };

  const settleHeaders = (): void => {
    const all = [
      ...(typeof source === "function" ? [] : Object.entries(source).flat()),
      ...(mode.revision === undefined ? [] : ["mcp-protocol-version", mode.revision]),
      ...(session === undefined ? [] : [sessionHeader, session]),
    ];
    usual = { POST: [...all, ...postHeaders], GET: [...all, "accept", "text/event-stream"], DELETE: all };
  };
  settleHeaders();

  const begin = (headers: string[], sink: ReplySink, request: WayRequest): Promise<void> => {
    const { method, body, stop, onSent, isExpress = false } = request;
    if (closed !== undefined && method !== "DELETE") return Promise.reject(closed);
    const written = body === undefined || typeof body.written !== "string" ? body?.bytes : body.written;
    const dispatcher: Dispatcher = isExpress ? expressPool : usualPool;
    return exchange(dispatcher, { to, method, headers, body: written, stop, onSent }, sink, terms);
  };

  const sendOnce = (sink: ReplySink, request: WayRequest): Promise<void> => {
    const own = request.headers ?? [];
    if (typeof source !== "function") return begin([...usual[request.method], ...own], sink, request);
    return source().then((given) =>
      begin([...Object.entries(given).flat(), ...usual[request.method], ...own], sink, request),
    );
  };

  return {
    url,
    target: `${url.origin}${url.pathname}`,
    clock,
    isSessionOver: false,
    get mode() {
      return mode;
    },
    set mode(settled) {
      mode = settled;
      if (mode.kind === "modern") session = undefined;
      settleHeaders();
    },
    get session() {
      return session;
    },
    set session(begun) {
      session = begun;
      settleHeaders();
    },
    send: (sink, request) => {
      if (authorizer === undefined) return sendOnce(sink, request);
      const { headers = [], stop } = request;
      const send = (token: HeaderPairs, reply: ReplySink): Promise<void> =>
        sendOnce(reply, token.length === 0 ? request : { ...request, headers: [...headers, ...token] });
      return sendAuthorized({ authorizer, send, sink, stop });
    },
    close,
    [Symbol.asyncDispose]: async () => {
      close();
      await Promise.all([usualPool.destroy(), expressPool.destroy()]);
    },
  };

  function close(): void {
    closed ??= new ClosedError("not_sent", "the client is closed");
    const reason = new ClosedError("outcome_unknown", "the client was closed");
    for (const each of underway.values()) each.abort(reason);
  }
}

const postHeaders: HeaderPairs = [
  "content-type",
  "application/json",
  "accept",
  "application/json, text/event-stream",
];
