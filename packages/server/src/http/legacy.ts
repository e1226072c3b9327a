import { randomBytes } from "node:crypto";
import {
  andThen,
  type Awaitable,
  recover,
  type Clock,
  sleep,
  LazyAbort,
  isPromise,
} from "@junctor/core/async";
import { RpcError, toStatus, ClosedError, ToolError } from "@junctor/core/errors";
import type { RawJson } from "@junctor/core/json";
import {
  isLegalBatch,
  isLegacyRevision,
  type Handshake,
  sessionHeader,
  type Caller,
  type LegacyEra,
  type Observation,
  isAtLeast,
  type WireContext,
} from "@junctor/core/mcp";
import {
  type Batch,
  type Notification,
  type Request,
  type Response,
  encodeMessage,
  toId,
  type Message,
} from "@junctor/core/rpc";
import { atExpiry, type Endpoint, refuseGreedy } from "./endpoint.ts";
import { streamOf } from "./event-store.ts";
import { scopeHeaders, type Admission, type Admitted, ownerOf } from "./guard.ts";
import {
  type FrameSink,
  type HttpHeaders,
  type Reply,
  parseAccept,
  refuse,
  sendError,
  sendJson,
  sseHeaders,
  toData,
  type Accepted,
  toErrorResponse,
} from "./reply.ts";
import { ResumableStream, onceGone, type LiveSession } from "./session-table.ts";

/** Serves `initialize`, the only request without a session, and sends the client the id of the session it began. */
export async function serveInitialize(
  request: Request,
  admission: Admission,
  endpoint: Endpoint,
): Promise<void> {
  const { server, sessions, mount } = endpoint;
  const { reply, caller, identity } = admission;
  let live: LiveSession | undefined;
  try {
    const result = await server.handle(request, {
      era: { kind: "legacy", session: undefined },
      cancellation: new LazyAbort(),
      caller,
      identity,
      notify: () => Promise.resolve(),
      beginSession: (handshake: Handshake) => {
        live = sessions.begin(handshake, caller, ownerOf(admission), mount);
        live.session.identity = identity;
      },
    });
    const headers = live === undefined ? {} : { [sessionHeader]: live.token };
    sendJson(reply, 200, encodeMessage({ kind: "result", id: request.id, result }), {
      "content-type": "application/json",
      ...headers,
    });
  } catch (error) {
    if (!(error instanceof RpcError)) throw error;
    if (toStatus(error) >= 429) refuseGreedy(admission, error, endpoint, request.id);
    else sendError(reply, error.code === "rpc.internal" ? 503 : 200, error, request);
  }
}

/** Serves one request of a session. */
export function serveLegacyRequest(request: Request, out: CallStream): Awaitable<void> {
  return andThen(runLegacyCall(request, out), (response) =>
    response === undefined ? out.abandon() : out.finish(response),
  );
}

/** Serves a batch: every request at once, one answer for all. */
export async function serveBatch(batch: Batch, reply: Reply, out: CallStream): Promise<void> {
  const { live } = out;
  if (!isLegalBatch(batch, live.session)) {
    const text = "Batches exist in protocol revision 2025-03-26 only, without initialize and modern requests";
    return refuse(reply, 400, text);
  }
  const invalid = batch.items.find((item) => item.kind === "invalid");
  if (invalid !== undefined) return sendError(reply, 400, invalid.error);
  const answers = await Promise.all(
    batch.items.map(async (item): Promise<Response | undefined> => {
      switch (item.kind) {
        case "request":
          return runLegacyCall(item, out);
        case "notification":
          serveLegacyNotification(item, live);
          return undefined;
        case "result":
        case "error":
          live.asks.answered(item);
          return undefined;
        case "invalid":
          return undefined; // Refused above, with the whole batch.
      }
    }),
  );
  const responses = answers.filter((answer) => answer !== undefined);
  if (responses.length > 0) await out.finish(responses);
  else await out.abandon();
}

/** The only notification that changes anything here is the one that cancels a request of the same session. */
export function serveLegacyNotification(notification: Notification, live: LiveSession | undefined): void {
  if (notification.method !== "notifications/cancelled") return;
  const text = notification.params?.at("requestId")?.text;
  const id = text === undefined ? undefined : toId(text);
  if (id !== undefined)
    live?.running.get(id)?.abort(new DOMException("The caller cancelled the request", "AbortError"));
}

/** `GET`: the stream of announcements, or the rest of a broken stream. */
export async function serveGet(admission: Admission, endpoint: Endpoint): Promise<void> {
  const { http, reply } = admission;
  const live = findSession(admission, endpoint);
  if (live === undefined) return;
  if (!parseAccept(http.header("accept")).sse)
    return refuse(reply, 406, "This answers with an event stream: accept text/event-stream");
  const lastEventId = http.header("last-event-id");
  if (lastEventId !== undefined) return resume(lastEventId, admission, live, endpoint);
  if (admission.piped !== undefined) await untilLeft(live, endpoint.clock);
  if (live.standalone?.isConnected === true)
    return refuse(reply, 409, "This session has a stream open already");
  const standing = new StandingStream(live);
  const refusal = endpoint.admissions.refusal(standing);
  if (refusal !== undefined) return refuseGreedy(admission, refusal, endpoint);
  if (live.standalone !== undefined) endpoint.forget(live.standalone);
  const stream = new ResumableStream(
    randomBytes(9).toString("base64url"),
    endpoint.events,
    endpoint.clock.now(),
    live.owner,
  );
  live.standalone = stream;
  await stream.open(
    standing.open(reply, live, endpoint),
    live.session.handshake.revision === "2025-11-25" ? endpoint.retryMs : undefined,
  );
  flushAnnouncements(live, endpoint);
}

/** How long another process may take to report the end of a stream, and how often we check. */
const leavingMs = 1000;
const lookMs = 20;

/**
 * Waits for the end of a stream that its client has left. A client may come back through another process before the process with
 * its stream has noticed that it left.
 */
async function untilLeft(live: LiveSession, clock: Clock): Promise<void> {
  const until = clock.now() + leavingMs;
  while (live.standalone?.isConnected === true && clock.now() < until) await sleep(lookMs, clock);
}

/** `DELETE`: ends a session for good. */
export function serveDelete(admission: Admission, endpoint: Endpoint): void {
  const live = findSession(admission, endpoint);
  if (live === undefined) return;
  endpoint.sessions.delete(live);
  admission.reply.send(200, {});
}

function streamHeaders(live: LiveSession): HttpHeaders {
  return { ...sseHeaders, [sessionHeader]: live.token };
}

/** A stream that stays open, and counts towards the streams of its caller until it is closed. */
class StandingStream implements Admitted {
  readonly caller: string | undefined;
  readonly owner: string | undefined;
  readonly isStream = true;
  #sink: FrameSink | undefined;

  constructor({ caller, owner }: LiveSession) {
    this.caller = caller;
    this.owner = owner;
  }

  open(reply: Reply, live: LiveSession, endpoint: Endpoint): FrameSink {
    const number = endpoint.admissions.add(this);
    // The session stays, and the client may come back with another token.
    const stop = atExpiry(live.session.identity, endpoint.clock, () => this.#sink?.end());
    this.#sink = endpoint.openSink(reply, streamHeaders(live), () => {
      stop();
      endpoint.admissions.delete(number);
      live.usedAt = endpoint.clock.now(); // From now on the client has the whole idle time to come back.
    });
    return this.#sink;
  }

  cut(reason: string): void {
    this.#sink?.cut(reason);
  }
}

async function resume(
  lastEventId: string,
  admission: Admission,
  live: LiveSession,
  endpoint: Endpoint,
): Promise<void> {
  const { reply } = admission;
  const id = streamOf(lastEventId);
  const stream = live.standalone?.id === id ? live.standalone : live.streams.get(id);
  const isKnown = stream !== undefined && (await endpoint.events.after(lastEventId)) !== undefined;
  if (!isKnown) {
    const text = `The event ${JSON.stringify(lastEventId)} is not known here, or what followed it is no longer kept`;
    return refuse(reply, 400, text);
  }
  if (admission.piped?.isMending === true && (stream.isConnected || endpoint.shortage > 0))
    return refuse(
      reply,
      409,
      "This stream continues over another connection, or was cut because memory is short",
    );
  const standing = new StandingStream(live);
  // A client that replaces its own open stream holds no more streams than before.
  const refusal = stream.isConnected ? undefined : endpoint.admissions.refusal(standing);
  if (refusal !== undefined) return refuseGreedy(admission, refusal, endpoint);
  const sink = standing.open(reply, live, endpoint);
  await stream.resume(sink, lastEventId, endpoint.clock.now());
  if (stream === live.standalone) flushAnnouncements(live, endpoint);
}

/** The most announcements kept for a session without a stream for them; beyond that the oldest is dropped. */
const maxUnannounced = 1024;

/**
 * Announces a change to a session, on its standalone stream. Without one the announcement waits. Announcements of the same change
 * are merged, so there are no more of them than things that can change.
 */
export function announce(news: Notification, live: LiveSession, endpoint: Endpoint): void {
  const data = toData(news);
  live.unannounced.set(news.params === undefined ? news.method : data, data);
  const [oldest] = live.unannounced.keys();
  if (live.unannounced.size > maxUnannounced && oldest !== undefined) live.unannounced.delete(oldest);
  flushAnnouncements(live, endpoint);
}

function flushAnnouncements(live: LiveSession, endpoint: Endpoint): void {
  const { standalone } = live;
  if (standalone?.isConnected !== true) return;
  const warn = (error: unknown): void => endpoint.onWarning("An announcement was lost", error);
  for (const data of live.unannounced.values())
    void recover(() => standalone.send(data, endpoint.clock.now()), warn);
  live.unannounced.clear();
}

/**
 * The session that a request names. Answers 400 if it names none, or a revision that no session speaks; 404 for a session that
 * does not exist or is not the caller's; 503 when there is no room for it.
 */
export function findSession(admission: Admission, endpoint: Endpoint): LiveSession | undefined {
  const { http, reply, caller } = admission;
  const token = http.header(sessionHeader);
  const revision = http.header("mcp-protocol-version")?.trim();
  if (revision !== undefined && !isLegacyRevision(revision)) {
    const text = `The header MCP-Protocol-Version names ${JSON.stringify(revision)}, which no session speaks`;
    return refuseWith(reply, 400, new RpcError("rpc.invalid_request", text));
  }
  if (token === undefined) return refuseWith(reply, 400, sessionMissing());
  const live = endpoint.sessions.find(token, caller, ownerOf(admission), endpoint.mount);
  if (live === "unknown") return refuseWith(reply, 404, sessionNotFound());
  if (!("session" in live)) return refuseWith(reply, toStatus(live), live);
  live.session.identity = admission.identity;
  return live;
}

function refuseWith(reply: Reply, status: number, error: RpcError): undefined {
  sendError(reply, status, error);
  return undefined;
}

export function sessionMissing(): RpcError {
  return new RpcError("rpc.invalid_request", "The header Mcp-Session-Id is missing; send initialize first");
}

export function sessionNotFound(): RpcError {
  return new RpcError(
    "rpc.invalid_request",
    "Session not found or expired; send initialize again, without Mcp-Session-Id",
  );
}

/** The most requests of one session that run at once. They outlive their connections, so the limit on connections does not bound them. */
const maxInFlight = 1024;

/**
 * Runs one request of a legacy session. Undefined when it was cancelled, because it gets no answer then. A client that hangs up
 * has not cancelled.
 */
function runLegacyCall(request: Request, out: CallStream): Awaitable<Response | undefined> {
  const { id } = request;
  const refusal = refusalOf(request, out);
  if (refusal !== undefined) return toErrorResponse(refusal, id);
  const call = new LegacyCall(out);
  try {
    const result = out.endpoint.server.handle(request, call);
    if (isPromise(result)) return waitForEnd(request, call, result, out);
    // A call that was answered at once cannot be cancelled, and its id cannot be used twice.
    call.end();
    return { kind: "result", id, result };
  } catch (error) {
    call.end();
    return toFailure(error, request, out);
  }
}

/** Waits for the end of a call, or until its client gives it up. */
function waitForEnd(
  request: Request,
  call: LegacyCall,
  result: Promise<RawJson>,
  out: CallStream,
): Promise<Response | undefined> {
  const { live, endpoint } = out;
  const { id } = request;
  live.running.set(id, call.cancellation);
  const number = endpoint.admissions.add(call);
  return new Promise((resolve) => {
    const { cancellation } = call;
    const end = (response: Response | undefined): void => {
      if (call.isOver) return;
      cancellation.offAbort(aborted);
      call.end();
      endpoint.admissions.delete(number);
      if (live.running.get(id) === call.cancellation) live.running.delete(id);
      live.usedAt = endpoint.clock.now(); // A client that lost its connection still has to fetch the answer.
      resolve(response);
    };
    result.then(
      (value) => end({ kind: "result", id, result: value }),
      (error: unknown) => end(toFailure(error, request, out)),
    );
    // A call that was given up does not wait for a handler that ignores its signal.
    const aborted = (): void => {
      const { reason } = cancellation;
      end(reason instanceof ClosedError ? toErrorResponse(toLost(reason), id) : undefined);
    };
    if (cancellation.isAborted) aborted();
    else cancellation.onAbort(aborted);
  });
}

/** The error for a call whose session ended before it. */
function toLost({ message, code, delivery }: ClosedError): RpcError {
  return new RpcError("rpc.internal", message, { data: { code, delivery } });
}

function toFailure(error: unknown, { id, method }: Request, out: CallStream): Response {
  const { endpoint } = out;
  if (error instanceof RpcError) {
    out.noteRefusal(error);
    return toErrorResponse(error, id);
  }
  endpoint.onWarning(`Serving ${method} failed`, error);
  return toErrorResponse(new RpcError("rpc.internal", "Internal error"), id);
}

function refusalOf({ id }: Request, { live, endpoint }: CallStream): RpcError | undefined {
  const { running } = live;
  if (running.has(id)) {
    return new RpcError("rpc.invalid_request", `The id ${id} is already in use by a request in flight`);
  }
  if (running.size < maxInFlight) {
    const refusal = endpoint.admissions.refusal({ owner: live.owner });
    if (refusal !== undefined) endpoint.onRefused(live.owner, refusal);
    return refusal;
  }
  return new RpcError("rpc.internal", `Too many requests in flight; at most ${maxInFlight} at once`);
}

/** The wire context of a legacy request; its messages go to `out`. */
class LegacyCall implements WireContext, Admitted {
  readonly era: LegacyEra;
  readonly identity: Caller | undefined;
  readonly #live: LiveSession;
  readonly cancellation: LazyAbort = new LazyAbort();
  /** Where its messages go, until it is over. */
  #out: CallStream | undefined;
  /** Declared, so that all calls have the same shape, observed or not. */
  observation: Observation | undefined = undefined;

  constructor(out: CallStream) {
    this.era = { kind: "legacy", session: out.live.session };
    this.identity = out.live.session.identity;
    this.#live = out.live;
    this.#out = out;
  }

  /** The only header that a legacy call uses. */
  readonly headers = (name: string): string | undefined =>
    name === "idempotency-key" ? this.#out?.header(name) : undefined;

  get caller(): string | undefined {
    return this.#live.caller;
  }

  get owner(): string | undefined {
    return this.#live.owner;
  }

  get isOver(): boolean {
    return this.#out === undefined;
  }

  /** Sends nothing from now on. Drops the reference to its stream, because the session's table of calls may keep this object for a while. */
  end(): void {
    this.#out = undefined;
  }

  notify(method: string, params: RawJson): Awaitable<void> {
    if (!this.cancellation.isAborted) return this.#out?.send({ kind: "notification", method, params });
  }

  ask(method: string, params: RawJson | undefined, signal: AbortSignal): Promise<RawJson> {
    if (this.#out?.canAsk === false) {
      throw new ToolError(`This needs ${method}, and the client accepts no event stream to be asked on.`);
    }
    // Not by `notify`, which is silent once the call is cancelled: the client must learn that its answer is no longer wanted.
    const via = {
      send: async (message: Message | readonly Message[]) => this.#out?.send(message as Message),
    };
    const gone = new AbortController();
    const asked = this.#live.asks.request(method, params, {
      signal: AbortSignal.any([signal, this.cancellation.signal, gone.signal]),
      via,
    });
    const out = this.#out;
    if (out === undefined) return asked;
    const stopLooking = onceGone(out.open(), out.endpoint.clock, () =>
      gone.abort(new ClosedError("outcome_unknown", "the client lost its connection and did not come back")),
    );
    return asked.finally(stopLooking);
  }

  async release(): Promise<void> {
    const canLeave = isAtLeast(this.#live.session.handshake.revision, "2025-11-25");
    if (canLeave) await this.#out?.release();
  }
}

/**
 * Where the messages of one legacy POST go: to a stream that is opened for the first message and outlives the connection. The
 * requests of a batch share one.
 */
export class CallStream {
  readonly live: LiveSession;
  readonly endpoint: Endpoint;
  readonly #admission: Admission;
  readonly #accepted: Accepted;
  #stream: ResumableStream | undefined;
  #refusal: HttpHeaders | undefined;

  constructor(live: LiveSession, accepted: Accepted, admission: Admission, endpoint: Endpoint) {
    this.live = live;
    this.endpoint = endpoint;
    this.#admission = admission;
    this.#accepted = accepted;
  }

  header(name: string): string | undefined {
    return this.#admission.http.header(name);
  }

  /** Whether the client can be asked something: it takes event streams. */
  get canAsk(): boolean {
    return this.#accepted.sse;
  }

  send(message: Message): Awaitable<void> {
    if (!this.#accepted.sse) return;
    return this.open().send(toData(message), this.endpoint.clock.now());
  }

  /** Closes the connection; see `WireContext.release`. */
  release(): Awaitable<void> {
    if (this.#accepted.sse) return this.open().close("released");
  }

  /** Notes the error of a request. If its caller lacks scopes, the answer says where to get them. */
  noteRefusal(error: RpcError): void {
    this.#refusal ??= scopeHeaders(error, this.#admission.http.path, this.endpoint);
  }

  /** Answers: on the stream if there is one, else as JSON. */
  finish(responses: Response | readonly Response[]): Awaitable<void> {
    if (this.#stream !== undefined || (!this.#accepted.json && this.#refusal === undefined))
      return this.#end(responses);
    const { reply } = this.#admission;
    const json = encodeMessage(responses);
    if (this.#refusal === undefined) sendJson(reply, 200, json);
    else sendJson(reply, 403, json, this.#refusal);
  }

  /** Ends the POST without an answer: its requests were cancelled. */
  async abandon(): Promise<void> {
    if (this.#stream === undefined) this.#admission.reply.send(202, {});
    else await this.#stream.close("ended");
  }

  async #end(responses: Response | readonly Response[]): Promise<void> {
    const out = this.open();
    const items = Array.isArray(responses) ? (responses as readonly Response[]) : [responses as Response];
    for (const response of items) await out.send(toData(response), this.endpoint.clock.now());
    await out.close("ended");
  }

  /** The stream, which begins now unless it has begun. */
  open(): ResumableStream {
    if (this.#stream !== undefined) return this.#stream;
    const { events, clock, retryMs } = this.endpoint;
    const stream = new ResumableStream(
      randomBytes(9).toString("base64url"),
      events,
      clock.now(),
      this.live.owner,
    );
    this.#stream = stream;
    keep(stream, this.live, this.endpoint);
    const canLeave = isAtLeast(this.live.session.handshake.revision, "2025-11-25");
    const sink = this.endpoint.openSink(this.#admission.reply, {
      ...sseHeaders,
      [sessionHeader]: this.live.token,
    });
    const warn = (error: unknown): void => this.endpoint.onWarning("A stream cannot be resumed", error);
    // Messages that are sent next wait for this.
    void recover(() => stream.open(sink, canLeave ? retryMs : undefined), warn);
    return stream;
  }
}

/** The most streams of one session that are kept after their calls have ended; beyond that the oldest cannot be resumed. */
const maxStreams = 64;

function keep(stream: ResumableStream, live: LiveSession, endpoint: Endpoint): void {
  const { streams } = live;
  streams.set(stream.id, stream);
  if (streams.size <= maxStreams) return;
  for (const oldest of streams.values()) {
    if (!oldest.isEnded) continue;
    streams.delete(oldest.id);
    return endpoint.forget(oldest);
  }
}
