import { setMaxListeners } from "node:events";
import { waitFor, LazyAbort, LeakyBucket } from "@junctor/core/async";
import { patienceMs } from "@junctor/core/channel";
import { RpcError, TimeoutError } from "@junctor/core/errors";
import { RawJson } from "@junctor/core/json";
import {
  type Link,
  type LinkEvents,
  type LinkMode,
  type LinkRequest,
  encodeHeaderValue,
  namedBy,
  sessionHeader,
} from "@junctor/core/mcp";
import {
  encodeMessage,
  type Notification,
  type Request,
  type RequestId,
  type Response,
  toErrorBody,
  toRequestId,
} from "@junctor/core/rpc";
import { type HeaderPairs, HttpEndpoint, type HttpLinkOptions } from "./endpoint.ts";
import { httpErrorOf } from "./exchange.ts";
import { type Pace, ReplyReader, type TakeMessage } from "./reply-reader.ts";
import { awaitAnswer, listenForAnnouncements } from "./resume.ts";
import { WholeReply } from "./whole-reply.ts";

/** How long the farewell to a legacy server may take. */
const farewellMs = 1000;

/** How long a server may take to accept an answer or a notification. */
const deliveryMs = 30_000;

/** Answers that the server has not accepted; beyond that the stream that brings its next request is not read. */
const maxDelivering = 64;

/** Most requests of the server that are worked on at once; beyond that they are refused. */
const maxAsked = 1024;

/** A link over Streamable HTTP, of either era. */
export class HttpLink implements Link {
  readonly target: string;
  /** Never: every request stands alone, and the next one may succeed. */
  readonly closed: Link["closed"] = new Promise(() => {});
  readonly #endpoint: HttpEndpoint;
  readonly #events: LinkEvents;
  readonly #maxBytes: number;
  readonly #onWarning: ((text: string) => void) | undefined;
  readonly #closing = new AbortController();
  readonly #pace: Pace;
  /** The requests of a legacy server that are not answered yet. */
  readonly #unanswered = new Map<RequestId, AbortController>();
  /** Answers, cancellations and the like that have not arrived yet. */
  readonly #delivering = new Set<Promise<void>>();
  /** Requests of the server that are worked on, also under one id. */
  #asking = 0;
  #nextId = 1;
  #closed: Promise<void> | undefined;

  constructor(url: URL, options: HttpLinkOptions) {
    this.#endpoint = new HttpEndpoint(url, options);
    this.#events = options.events;
    this.#maxBytes = options.maxResponseBytes ?? 64 * 1024 * 1024;
    this.#onWarning = options.onWarning;
    const { target, clock } = this.#endpoint;
    const { signal } = this.#closing;
    this.target = target;
    // Each stream that has to wait listens to it.
    setMaxListeners(0, signal);
    this.#pace = { bucket: new LeakyBucket(clock, patienceMs), clock, signal };
  }

  use(mode: LinkMode): void {
    this.#endpoint.mode = mode;
  }

  async request(request: LinkRequest): Promise<RawJson> {
    const { method, params, events, onSent, stop } = request;
    if (stop.isAborted) throw stop.reason;
    const id = toRequestId(request.id ?? this.#nextId++);
    /** Questions on this request's stream end with the request. */
    let asked: Set<AbortController> | undefined;
    let takeOwn: TakeMessage | undefined;
    // Most requests are answered without another word.
    const take: TakeMessage = (message) => {
      takeOwn ??= this.#takeFor(events?.() ?? {}, (asked = new Set()));
      return takeOwn(message);
    };
    const onAbort = (): void => this.#cancel(id, method);
    stop.onAbort(onAbort);
    try {
      const body = encodeMessage({ kind: "request", id, method, params });
      const reader = new ReplyReader({ id, maxBytes: this.#maxBytes, pace: this.#pace, take });
      const headers = this.#mirror(request);
      const posted = this.#endpoint.send(reader, { method: "POST", body, stop, onSent, headers });
      return this.#toResult(method, await awaitAnswer(posted, this.#endpoint, reader, { id, stop }), reader);
    } catch (error) {
      if (!isProbe(method) && error instanceof RpcError && error.rpcCode === 0)
        this.#onWarning?.(`The server sent an answer that cannot be read: ${error.message}`);
      throw error;
    } finally {
      stop.offAbort(onAbort);
      if (asked !== undefined) withdraw(asked);
    }
  }

  notify(method: string, params: RawJson | undefined): Promise<void> {
    const headers = this.#endpoint.mode.kind === "modern" ? ["mcp-method", method] : [];
    return this.#deliver(encodeMessage({ kind: "notification", method, params }), headers);
  }

  listen(onOpen: (mayHaveMissed: boolean) => void): Promise<void> {
    return listenForAnnouncements(this.#endpoint, {
      take: this.#takeFor({}),
      maxBytes: this.#maxBytes,
      pace: this.#pace,
      onOpen,
      onWarning: this.#onWarning,
    });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return (this.#closed ??= this.#close());
  }

  #toResult(method: string, response: Response, { whole }: ReplyReader): RawJson {
    const { status, headers, body } = whole;
    if (response.kind === "result") {
      const session = headers[sessionHeader];
      if (method === "initialize") this.#endpoint.session = typeof session === "string" ? session : undefined;
      return response.result;
    }
    const { code, message, data } = response.error;
    const cause = status === 200 ? undefined : httpErrorOf(status, this.#endpoint.url, body);
    throw new RpcError("rpc.other", message, { rpcCode: code, data: data?.value, cause });
  }

  /** A modern request repeats its method and name in its headers, so that proxies need not read the body. */
  #mirror({ method, params, about, mirrored }: LinkRequest): HeaderPairs {
    if (this.#endpoint.mode.kind !== "modern") return noHeaders;
    const pairs = ["mcp-method", method];
    const member = namedBy.get(method);
    const name = about ?? (member === undefined ? undefined : params?.at(member)?.value);
    if (typeof name === "string") pairs.push("mcp-name", encodeHeaderValue(name));
    for (const header in mirrored) pairs.push(header, mirrored[header] as string);
    return pairs;
  }

  /** A modern request is cancelled by closing its stream, which the abort has done. A legacy server needs a notification. */
  #cancel(id: RequestId, method: string): void {
    if (this.#endpoint.mode.kind === "modern" || isProbe(method)) return;
    const params = RawJson.fromText(`{"requestId":${id}}`);
    this.notify("notifications/cancelled", params).catch(() => {}); // The server is gone, or forgot us: nothing to cancel.
  }

  /** Sends a message that has no answer. */
  #deliver(body: RawJson, headers: HeaderPairs): Promise<void> {
    const { clock, url } = this.#endpoint;
    const send = async (): Promise<void> => {
      const reply = new WholeReply(64 * 1024);
      const stop = new LazyAbort();
      const late = (): void => stop.abort(new TimeoutError("total", deliveryMs, "outcome_unknown"));
      const stopTimer = clock.timer(deliveryMs, late);
      const message = { method: "POST", body, headers, stop, isExpress: true } as const;
      await this.#endpoint.send(reply, message).finally(stopTimer);
      if (reply.status >= 300) throw httpErrorOf(reply.status, url, reply.body);
    };
    const delivered: Promise<void> = send().finally(() => this.#delivering.delete(delivered));
    this.#delivering.add(delivered);
    return delivered;
  }

  async #untilDelivered(): Promise<void> {
    while (this.#delivering.size >= maxDelivering) await Promise.race(this.#delivering).catch(() => {});
  }

  #takeFor(given: Partial<LinkEvents>, asked: Set<AbortController> = new Set()): TakeMessage {
    const events = { ...this.#events, ...given };
    return (message) => {
      switch (message.kind) {
        case "notification":
          if (message.method === "notifications/cancelled") this.#giveUp(message);
          return events.notified(message);
        case "request":
          // Modern servers may not ask; whatever they want, they get no answer.
          if (this.#endpoint.mode.kind === "legacy") void this.#answer(message, events, asked);
          // A server that asks and takes no answers has to wait with the next question.
          return this.#delivering.size < maxDelivering ? undefined : this.#untilDelivered();
        case "invalid":
          return this.#onWarning?.(
            `${this.target} sent something that is no message: ${message.error.message}`,
          );
      }
    };
  }

  async #answer(request: Request, events: LinkEvents, asked: Set<AbortController>): Promise<void> {
    const { id } = request;
    if (this.#asking >= maxAsked) {
      const text = `Too many requests in flight; at most ${maxAsked} at once`;
      const error = toErrorBody(new RpcError("rpc.internal", text));
      return this.#deliver(encodeMessage({ kind: "error", id, error }), []).catch(() => {});
    }
    const withdrawal = new AbortController();
    this.#asking++;
    this.#unanswered.set(id, withdrawal);
    asked.add(withdrawal);
    const response = await events.asked(request, withdrawal.signal).then(
      (result): Response => ({ kind: "result", id, result }),
      (error: unknown): Response => ({ kind: "error", id, error: toErrorBody(toRpcError(error)) }),
    );
    this.#asking--;
    this.#unanswered.delete(id);
    asked.delete(withdrawal);
    if (withdrawal.signal.aborted) return;
    await this.#deliver(encodeMessage(response), []).catch((error: unknown) => {
      if (!this.#closing.signal.aborted)
        this.#onWarning?.(`An answer could not be delivered: ${String(error)}`);
    });
  }

  /** A server that no longer wants an answer gets none. */
  #giveUp({ params }: Notification): void {
    const id = params?.at("requestId")?.text as RequestId | undefined;
    if (id !== undefined)
      this.#unanswered.get(id)?.abort(new DOMException("The server cancelled it", "AbortError"));
  }

  async #close(): Promise<void> {
    const endpoint = this.#endpoint;
    const { clock } = endpoint;
    // Messages on their way, such as cancellations, get the time to arrive.
    await waitFor(Promise.allSettled(this.#delivering), { ms: farewellMs, clock });
    this.#closing.abort();
    for (const withdrawal of this.#unanswered.values()) withdrawal.abort();
    endpoint.close();
    if (endpoint.session !== undefined && !endpoint.isSessionOver) {
      // A courtesy; many servers do not offer it, and a server that is gone needs none.
      const stop = new LazyAbort();
      const stopTimer = clock.timer(farewellMs, () => stop.abort(undefined));
      await endpoint.send(new WholeReply(64 * 1024), { method: "DELETE", stop }).catch(() => {});
      stopTimer();
    }
    await endpoint[Symbol.asyncDispose]();
  }
}

/** Whether a request finds out what the server speaks. */
function isProbe(method: string): boolean {
  return method === "initialize" || method === "server/discover";
}

const noHeaders: HeaderPairs = [];

/** Ends questions whose request is over. */
function withdraw(asked: Iterable<AbortController>): void {
  const reason = new DOMException("The request is over", "AbortError");
  for (const withdrawal of asked) withdrawal.abort(reason);
}

function toRpcError(error: unknown): RpcError {
  return error instanceof RpcError ? error : new RpcError("rpc.internal", "Internal error", { cause: error });
}
