import { setMaxListeners } from "node:events";
import {
  waitFor,
  LazyAbort,
  LeakyBucket,
  createBackoff,
  type Cancellation,
  fromSignal,
  sleep,
} from "@junctor/core/async";
import { RpcError, TimeoutError, ClosedError, rpcCodes, SessionExpiredError } from "@junctor/core/errors";
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
  type Incoming,
} from "@junctor/core/rpc";
import { patienceMs } from "../link/index.ts";
import { type HeaderPairs, HttpEndpoint, type HttpLinkOptions } from "./endpoint.ts";
import { httpErrorOf, isRefused, mediaTypeOf, type ReplySink, WholeReply } from "./exchange.ts";
import { type Pace, ReplyReader, type TakeMessage } from "./reply-reader.ts";

/** How long closing may wait for messages on their way, and for the request that deletes a legacy session. */
const farewellMs = 1000;

/** How long a server may take to accept an answer or a notification. */
const deliveryMs = 30_000;

/** The most answers that the server has not accepted; beyond that the stream with its next request is not read. */
const maxDelivering = 64;

/** The most requests of the server that are handled at once; beyond that they are refused. */
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
  /** Answers, cancellations and other messages that the server has not accepted yet. */
  readonly #delivering = new Set<Promise<void>>();
  /** Requests of the server that are being handled. Counted, because several may have one id. */
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
    // Each paused stream listens to it.
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
    /** Questions on this request's stream, which end with the request. */
    let asked: Set<AbortController> | undefined;
    let takeOwn: TakeMessage | undefined;
    // Created when needed: most requests are answered without any other message.
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
    const { status, headers } = whole;
    if (response.kind === "result") {
      const session = headers[sessionHeader];
      if (method === "initialize") this.#endpoint.session = typeof session === "string" ? session : undefined;
      return response.result;
    }
    const { code, message, data } = response.error;
    // The body is put together when it is read, so results do not read it.
    const cause = status === 200 ? undefined : httpErrorOf(status, this.#endpoint.url, whole.body);
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
    this.notify("notifications/cancelled", params).catch(() => {}); // The server is gone or has forgotten the session: nothing to cancel.
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

  #takeFor(own: Partial<LinkEvents>, asked: Set<AbortController> = new Set()): TakeMessage {
    const events = { ...this.#events, ...own };
    return (message) => {
      switch (message.kind) {
        case "notification":
          if (message.method === "notifications/cancelled") this.#giveUp(message);
          return events.notified(message);
        case "request":
          // Modern servers may not send requests, and get no answer.
          if (this.#endpoint.mode.kind === "legacy") void this.#answer(message, events, asked);
          // A server that does not take answers has to wait with its next question.
          return this.#delivering.size < maxDelivering ? undefined : this.#untilDelivered();
        case "invalid":
          return this.#onWarning?.(
            `${this.target} sent something that is not a message: ${message.error.message}`,
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

  /** Withdraws a question that the server cancelled: it gets no answer. */
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
      // A courtesy: many servers do not offer it, and the server may be gone.
      const stop = new LazyAbort();
      const stopTimer = clock.timer(farewellMs, () => stop.abort(undefined));
      await endpoint.send(new WholeReply(64 * 1024), { method: "DELETE", stop }).catch(() => {});
      stopTimer();
    }
    await endpoint[Symbol.asyncDispose]();
  }
}

/** Whether a request finds out which era the server speaks. */
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

/** The longest wait that a server may ask for. */
const maxRetryMs: number = 5 * 60_000;

/** How often a broken legacy stream is resumed without a new event in between. */
const maxResumes = 5;

/**
 * Waits for the answer to a posted request. Where a legacy server numbers its events, that may take several responses.
 * Rejects at once when the answer cannot come any more.
 */
function awaitAnswer(
  posted: Promise<void>,
  endpoint: HttpEndpoint,
  reader: ReplyReader,
  { id, stop }: { readonly id: RequestId; readonly stop: Cancellation },
): Promise<Response> {
  return posted.then(
    () =>
      reader.isStream ? awaitStreamed(endpoint, undefined, reader, stop) : toAnswer(endpoint, reader, id),
    (error: unknown) => {
      if (!reader.isStream || !isBroken(error)) throw error;
      return awaitStreamed(endpoint, error, reader, stop);
    },
  );
}

/** Waits for an answer on a stream, and resumes the stream where possible. `failed` is the error if it broke already. */
async function awaitStreamed(
  endpoint: HttpEndpoint,
  failed: unknown,
  reader: ReplyReader,
  stop: Cancellation,
): Promise<Response> {
  let broken = failed;
  const backoff = createBackoff();
  for (let failures = broken === undefined ? 0 : 1; reader.answer === undefined;) {
    const { lastEventId, retryMs, events } = reader;
    // An id that cannot stand in a header cannot be resumed from.
    const isResumable = /^[\x20-\xff]+$/.test(lastEventId ?? "") && endpoint.mode.kind === "legacy";
    if (!isResumable || failures > maxResumes || isRefused(broken)) throw lost(endpoint, broken);
    // A stream that broke is resumed at once; a server that ended it wants us to wait.
    const waitMs = broken !== undefined && failures === 1 ? 0 : backoff.next();
    await sleep(Math.max(Math.min(retryMs ?? 0, maxRetryMs), waitMs), endpoint.clock, stop.signal);
    broken = await resume(endpoint, reader, lastEventId ?? "", stop);
    if (reader.events > events || reader.lastEventId !== lastEventId) {
      failures = 0;
      backoff.reset();
    }
    // A server that says when to come back may end the stream any number of times, within the caller's deadline.
    if (broken !== undefined || reader.retryMs === undefined) failures++;
  }
  return reader.answer;
}

/** Resumes a stream after an event. Resolves with the error if another attempt may succeed. */
async function resume(
  endpoint: HttpEndpoint,
  reader: ReplyReader,
  lastEventId: string,
  stop: Cancellation,
): Promise<unknown> {
  reader.rewind();
  try {
    await endpoint.send(reader, { method: "GET", stop, headers: ["last-event-id", lastEventId] });
  } catch (error) {
    if (isBroken(error)) return error;
    throw error;
  }
  if (reader.isStream) return undefined;
  const { status, body } = reader.whole;
  const refusal = httpErrorOf(status, endpoint.url, body);
  if (status >= 500) return refusal;
  throw lost(endpoint, refusal);
}

/** Whether it is a failure of the network, so that another request may succeed. */
function isBroken(error: unknown): boolean {
  return error instanceof ClosedError;
}

/** The request was sent, and its outcome is unknown. */
function lost({ target }: HttpEndpoint, cause: unknown): ClosedError {
  return new ClosedError("outcome_unknown", `${target} ended the stream before the answer`, { cause });
}

/** The answer in a JSON body. Throws the error that says why there is none. */
function toAnswer(endpoint: HttpEndpoint, reader: ReplyReader, id: RequestId): Response {
  const { status } = reader.whole;
  const message = reader.whole.parse();
  const isForUs = message.kind === "result" || message.kind === "error" ? message.id === id : false;
  const isForgotten =
    (status === 404 && !(isForUs && isUnknownMethod(message))) ||
    (status === 400 && !isForUs && isNoSession(message));
  if (isForgotten && endpoint.session !== undefined) {
    endpoint.isSessionOver = true;
    throw new SessionExpiredError();
  }
  if (message.kind === "result" && isForUs && status < 300) return message;
  // Authorization is a matter of HTTP, whatever the body says.
  if (status === 401 || status === 403) throw httpErrorOf(status, endpoint.url, reader.whole.body);
  // An error without an id is about the only request there was.
  if (message.kind === "error" && (isForUs || message.id === undefined)) return message;
  if (status < 300 && message.kind === "invalid" && message.answer !== undefined)
    throw new RpcError("rpc.other", message.error.message, { cause: message.error });
  if (status < 300) throw notMcp(endpoint, reader.whole);
  throw httpErrorOf(status, endpoint.url, reader.whole.body);
}

/** The error for a URL that answers with a web page, or anything else that is not MCP. */
function notMcp({ target, url }: HttpEndpoint, { status, headers, body }: WholeReply): RpcError {
  const isPage = mediaTypeOf(headers) === "text/html";
  const what = isPage ? "a web page" : "something that is not an answer to the request";
  const text = `${target} answered ${status} with ${what}: is this the URL of an MCP endpoint?`;
  return new RpcError("rpc.other", text, { cause: httpErrorOf(status, url, body) });
}

/** How the official servers say that they do not know a session; the protocol wants 404. */
function isNoSession(message: Incoming): boolean {
  return message.kind === "error" && message.error.code === -32_000;
}

function isUnknownMethod(message: Incoming): boolean {
  return message.kind === "error" && message.error.code === rpcCodes["rpc.method_not_found"];
}

interface ListenOptions {
  readonly take: TakeMessage;
  readonly maxBytes: number;
  readonly pace: Pace;
  /** Called when the stream opened; `mayHaveMissed` says that announcements may have been lost before. */
  readonly onOpen: (mayHaveMissed: boolean) => void;
  readonly onWarning?: ((text: string) => void) | undefined;
}

/** How long a stream must have lasted to count as working. */
const stableMs = 5000;

/**
 * Keeps a legacy server's stream of announcements open until the signal aborts or the server refuses it for good. A stream
 * that ends at once is opened again after growing delays, and never sooner than the server wants.
 */
async function listenForAnnouncements(endpoint: HttpEndpoint, options: ListenOptions): Promise<void> {
  const { take, maxBytes, pace, onOpen, onWarning } = options;
  const { signal } = pace;
  const backoff = createBackoff();
  const stop = fromSignal(signal);
  const { session } = endpoint;
  let wasOpen = false;
  let openedAt = 0;
  const reader = new ReplyReader({ maxBytes, pace, take });
  const sink: ReplySink = {
    head: (status, headers) => {
      const mayHaveMissed = wasOpen && reader.lastEventId === undefined;
      reader.rewind();
      reader.head(status, headers);
      if (!reader.isStream) return;
      openedAt = endpoint.clock.now();
      wasOpen = true;
      onOpen(mayHaveMissed);
    },
    chunk: (bytes) => reader.chunk(bytes),
  };
  while (!signal.aborted && endpoint.session === session) {
    try {
      const { lastEventId } = reader;
      const headers = lastEventId === undefined ? [] : ["last-event-id", lastEventId];
      await endpoint.send(sink, { method: "GET", stop, headers });
      if (!reader.isStream && reader.whole.status < 500) return; // Not offered (405), or the session is over.
    } catch (error) {
      if (signal.aborted) return;
      onWarning?.(`The stream of announcements broke: ${String(error)}`);
    }
    if (reader.isStream && endpoint.clock.now() - openedAt >= stableMs) backoff.reset();
    await sleep(
      Math.max(Math.min(reader.retryMs ?? 0, maxRetryMs), backoff.next()),
      endpoint.clock,
      signal,
    ).catch(() => {});
  }
}
