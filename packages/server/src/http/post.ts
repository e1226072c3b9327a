import { type Awaitable, andThen, isPromise, tryThen, LazyAbort } from "@junctor/core/async";
import { givenUp } from "@junctor/core/channel";
import { RpcError, ClosedError, toStatus } from "@junctor/core/errors";
import type { RawJson } from "@junctor/core/json";
import {
  decideEra,
  sessionHeader,
  messageShape,
  type Caller,
  type HeaderLookup,
  type ModernEra,
  type Observation,
  type WireContext,
} from "@junctor/core/mcp";
import {
  type Batch,
  type Notification,
  type Request,
  type Response,
  parseMessage,
  encodeMessage,
  type Message,
  type RequestId,
} from "@junctor/core/rpc";
import { type Endpoint, refuseGreedy, refuseNew, type Responses, atExpiry } from "./endpoint.ts";
import { scopeHeaders, type Admission, ownerOf, type Admitted } from "./guard.ts";
import {
  CallStream,
  findSession,
  serveBatch,
  serveInitialize,
  serveLegacyNotification,
  serveLegacyRequest,
  sessionMissing,
  sessionNotFound,
} from "./legacy.ts";
import {
  type Accepted,
  type HttpRequest,
  isJson,
  parseAccept,
  refuse,
  refuseKey,
  sendError,
  type WantedBody,
  type FrameSink,
  type HttpHeaders,
  sendJson,
  sseHeaders,
  toData,
  toErrorResponse,
  toFrame,
} from "./reply.ts";

/** Serves the body of an accepted request. */
type ServeBody = (body: Uint8Array, admission: Admission, endpoint: Endpoint) => Awaitable<void>;

const smallBytes = 16 * 1024;

/** Asks for the body of a request, which must be JSON. Undefined if the request was refused: for its type, or because memory is short. */
export function wantJson(admission: Admission, endpoint: Endpoint, serve: ServeBody): WantedBody | undefined {
  const { http, reply } = admission;
  if (!isJson(http.header("content-type"))) {
    refuse(reply, 415, "The body must be application/json");
    return undefined;
  }
  const { maxBodyBytes } = endpoint;
  // While memory is short, only small bodies are read: they may cancel a call.
  const isSmall = endpoint.shortage === 0 || Number(http.header("content-length") ?? Infinity) <= smallBytes;
  if (!isSmall && refuseNew(admission, endpoint)) return undefined;
  return {
    maxBytes: maxBodyBytes,
    take: (body) => {
      if (body === "aborted") return;
      if (body !== "too_large") return serve(body, admission, endpoint);
      refuse(reply, 413, `The body is larger than ${maxBodyBytes} bytes`);
    },
  };
}

/** Serves a POST by the kind of its body and its era. */
export function servePost(body: Uint8Array, admission: Admission, endpoint: Endpoint): Awaitable<void> {
  const { http, reply } = admission;
  // The key of a caller that sends slowly may have been revoked meanwhile.
  if (!endpoint.admissions.revocations.holds(admission.caller, admission.since))
    return refuseKey(reply, true);
  const accepted = accept(http, endpoint.responses);
  if (!accepted.json && !accepted.sse)
    return refuse(reply, 406, "Accept application/json and text/event-stream");
  const incoming = parseMessage(body, { shape: messageShape });
  switch (incoming.kind) {
    case "invalid":
      return sendError(reply, 400, withCode(incoming.error, endpoint), incoming);
    case "request":
    case "notification":
      return serveSingle(incoming, accepted, admission, endpoint);
    case "batch":
    case "result":
    case "error":
      return serveOther(incoming, accepted, admission, endpoint);
  }
}

function serveSingle(
  message: Request | Notification,
  accepted: Accepted,
  admission: Admission,
  endpoint: Endpoint,
): Awaitable<void> {
  const { http, reply, caller } = admission;
  const { serves } = endpoint.server;
  const token = serves === "modern" ? undefined : http.header(sessionHeader);
  const { sessions, mount } = endpoint;
  const found = token === undefined ? "unknown" : sessions.find(token, caller, ownerOf(admission), mount);
  const live = typeof found === "string" || !("session" in found) ? undefined : found;
  if (live !== undefined) live.session.identity = admission.identity;
  const era = decideEra(message, { session: live?.session, headers: http.header, serves });
  const id = message.kind === "request" ? message.id : undefined;
  if (typeof found !== "string" && live === undefined && era.kind !== "modern")
    return refuseGreedy(admission, found as RpcError, endpoint, id);
  if (era.kind === "refused") {
    // An unknown session explains more than a missing handshake; any other fault explains more than both.
    const isLost = token !== undefined && era.error.code === "rpc.not_initialized";
    return isLost
      ? sendError(reply, 404, sessionNotFound(), { id })
      : sendError(reply, 400, era.error, { id });
  }
  if (era.kind === "legacy" && token !== undefined && live === undefined)
    return sendError(reply, 404, sessionNotFound(), { id });
  if (message.kind === "notification") {
    if (era.kind === "legacy") {
      if (live === undefined && serves !== "modern") return sendError(reply, 400, sessionMissing());
      serveLegacyNotification(message, live);
    }
    return reply.send(202, {});
  }
  if ((endpoint.isDraining || endpoint.shortage > 0) && refuseNew(admission, endpoint, message.id)) return;
  if (era.kind === "modern") return new ModernCall(era, accepted, admission, endpoint).serve(message);
  if (live === undefined) return serveInitialize(message, admission, endpoint);
  if (message.method === "initialize")
    return refuse(reply, 400, "This session is initialized already", message);
  return serveLegacyRequest(message, new CallStream(live, accepted, admission, endpoint));
}

/** Serves what only legacy sessions send: batches, and answers to our questions. */
async function serveOther(
  incoming: Batch | Response,
  accepted: Accepted,
  admission: Admission,
  endpoint: Endpoint,
): Promise<void> {
  const { reply } = admission;
  if (endpoint.server.serves === "modern") return refuse(reply, 400, "Send one request, or one notification");
  const live = findSession(admission, endpoint);
  if (live === undefined) return;
  if (incoming.kind === "batch") {
    const isNew = incoming.items.some((item) => item.kind === "request");
    if (isNew && refuseNew(admission, endpoint)) return;
    return serveBatch(incoming, reply, new CallStream(live, accepted, admission, endpoint));
  }
  live.asks.answered(incoming);
  reply.send(202, {});
}

function accept(http: HttpRequest, responses: Responses): Accepted {
  if (responses === "auto") return parseAccept(http.header("accept"));
  return { json: responses === "json", sse: responses === "sse" };
}

function withCode(error: RpcError, { server }: Endpoint): RpcError {
  return error.code === "rpc.parse"
    ? new RpcError("rpc.parse", error.message, { rpcCode: server.parseErrorCode })
    : error;
}

/** The reason of the abort when a client hung up. */
export const hungUp = "The client hung up";

/**
 * One modern request: one call, one reply. The reply is JSON unless the call sends something before its result. A client
 * that hangs up has cancelled.
 *
 * More than 15 members, because it is the wire context, the reply and the admission of its call at once: an object for
 * each of them would cost every call.
 */
class ModernCall implements WireContext, Admitted {
  readonly era: ModernEra;
  readonly headers: HeaderLookup;
  readonly caller: string | undefined;
  readonly identity: Caller | undefined;
  readonly #admission: Admission;
  readonly #endpoint: Endpoint;
  readonly #accepted: Accepted;
  readonly cancellation: LazyAbort = new LazyAbort();
  isStream = false;
  #id: RequestId | undefined;
  #sink: FrameSink | undefined;
  /** `gone`: the client hung up. `over`: the answer was given. */
  #state: "open" | "gone" | "over" = "open";
  /** Declared, so that all calls have the same shape, observed or not. */
  observation: Observation | undefined = undefined;

  constructor(era: ModernEra, accepted: Accepted, admission: Admission, endpoint: Endpoint) {
    const { header } = admission.http;
    this.era = era;
    // Only headers about the request: a tool must not see the caller's credentials.
    this.headers = (name) =>
      name.startsWith("mcp-") || name === "traceparent" || name === "idempotency-key"
        ? header(name)
        : undefined;
    this.caller = admission.caller;
    this.identity = admission.identity;
    this.#admission = admission;
    this.#endpoint = endpoint;
    this.#accepted = accepted;
  }

  get owner(): string | undefined {
    return ownerOf(this.#admission);
  }

  serve(request: Request): Awaitable<void> {
    const { server, admissions } = this.#endpoint;
    const { reply } = this.#admission;
    const { id } = request;
    this.#id = id;
    this.isStream = request.method === "subscriptions/listen";
    const refusal = admissions.refusal(this);
    if (refusal !== undefined) return refuseGreedy(this.#admission, refusal, this.#endpoint, id);
    if (this.isStream && !this.#accepted.sse) {
      const text = "subscriptions/listen answers with an event stream: accept text/event-stream";
      return refuse(reply, 406, text, request);
    }
    let number: number | undefined;
    const answered = tryThen(
      () => server.handle(request, this),
      (result) => {
        if (number !== undefined) admissions.delete(number);
        return this.#answer({ kind: "result", id, result }, 200);
      },
      (error) => {
        if (number !== undefined) admissions.delete(number);
        if (!(error instanceof RpcError)) throw error;
        const status = toStatus(error);
        if (status >= 429) this.#endpoint.onRefused(this.owner, error);
        const { path } = this.#admission.http;
        const headers = status === 403 ? scopeHeaders(error, path, this.#endpoint) : undefined;
        return this.#answer(toErrorResponse(error, id), status, headers);
      },
    );
    // Only a call that is still underway can be hung up on or revoked.
    if (isPromise(answered)) {
      reply.onHangUp(() => {
        if (this.#state === "over") return;
        this.#state = "gone";
        this.cancellation.abort(new DOMException(hungUp, "AbortError"));
      });
      if (this.#state !== "over") number = admissions.add(this);
      if (this.isStream && number !== undefined) this.#endAtExpiry(answered);
    }
    return answered;
  }

  notify(method: string, params: RawJson): Awaitable<void> {
    if (this.#accepted.sse && !this.cancellation.isAborted)
      return this.#write({ kind: "notification", method, params });
  }

  /** Ends a stream with its result when the caller's token expires. */
  #endAtExpiry(answered: Promise<void>): void {
    const stop = atExpiry(this.identity, this.#endpoint.clock, () => this.revoke());
    answered.then(stop, stop);
  }

  /** The caller's key was revoked. The client is still there, so the call ends with an answer. */
  revoke(): void {
    if (this.#state !== "over")
      this.cancellation.abort(new DOMException("The key was revoked", "AbortError"));
  }

  /** Answers that the outcome is unknown, because the server stops. */
  giveUp(): void {
    if (this.#state !== "open" || this.isStream) return;
    void this.#answer(toErrorResponse(givenUp(), this.#id), 200);
    this.cancellation.abort(new ClosedError("outcome_unknown", "the server stopped"));
  }

  cut(reason: string): void {
    this.#sink?.cut(reason);
  }

  #answer(response: Response, status: number, headers?: HttpHeaders): Awaitable<void> {
    if (this.#state === "over") return;
    if (this.#sink === undefined && (this.#accepted.json || status !== 200)) {
      this.#state = "over";
      return sendJson(this.#admission.reply, status, encodeMessage(response), headers);
    }
    const written = this.#write(response);
    this.#state = "over";
    return andThen(written, () => this.#sink?.end());
  }

  #write(message: Message): Awaitable<void> {
    if (this.#state !== "open") return;
    this.#sink ??= this.#endpoint.openSink(this.#admission.reply, sseHeaders);
    return this.#sink.write(toFrame(toData(message)));
  }
}
