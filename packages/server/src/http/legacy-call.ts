import { randomBytes } from "node:crypto";
import { type Awaitable, isPromise, recover, LazyAbort } from "@junctor/core/async";
import { ClosedError, RpcError, ToolError } from "@junctor/core/errors";
import type { RawJson } from "@junctor/core/json";
import {
  type Caller,
  type LegacyEra,
  type Observation,
  isAtLeast,
  type WireContext,
  sessionHeader,
} from "@junctor/core/mcp";
import { type Message, type Request, type Response, encodeMessage } from "@junctor/core/rpc";
import { scopeHeaders } from "./admit.ts";
import type { Endpoint } from "./endpoint.ts";
import type { Admission, Admitted } from "./guard.ts";
import { type Accepted, type HttpHeaders, sendJson, sseHeaders, toData, toErrorResponse } from "./reply.ts";
import { onceGone, ResumableStream } from "./resumable-stream.ts";
import type { LiveSession } from "./session-table.ts";

/** Most requests of one session worked on at once. They outlive their connections, so those do not limit them. */
const maxInFlight = 1024;

/**
 * Runs one request of a legacy session. Undefined when it was cancelled: nothing is sent for it any more. A client that
 * hangs up has not cancelled.
 */
export function runLegacyCall(request: Request, out: CallStream): Awaitable<Response | undefined> {
  const { id } = request;
  const refusal = refusalOf(request, out);
  if (refusal !== undefined) return toErrorResponse(refusal, id);
  const call = new LegacyCall(out);
  try {
    const result = out.endpoint.server.handle(request, call);
    if (isPromise(result)) return underway(request, call, result, out);
    // A call that was answered at once cannot be cancelled, and its id cannot be used twice.
    call.end();
    return { kind: "result", id, result };
  } catch (error) {
    call.end();
    return toFailure(error, request, out);
  }
}

/** Waits for the end of a call, which may be that its client gives it up. */
function underway(
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
      live.usedAt = endpoint.clock.now(); // The client has yet to come for the answer if it lost its connection.
      resolve(response);
    };
    result.then(
      (value) => end({ kind: "result", id, result: value }),
      (error: unknown) => end(toFailure(error, request, out)),
    );
    // The client that gives a call up does not wait for a handler that ignores its signal.
    const aborted = (): void => {
      const { reason } = cancellation;
      end(reason instanceof ClosedError ? toErrorResponse(toLost(reason), id) : undefined);
    };
    if (cancellation.isAborted) aborted();
    else cancellation.onAbort(aborted);
  });
}

/** The answer to a call whose session ended before it. */
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
  /** Declared, so that calls that are observed have the same shape as those that are not. */
  observation: Observation | undefined = undefined;

  constructor(out: CallStream) {
    this.era = { kind: "legacy", session: out.live.session };
    this.identity = out.live.session.identity;
    this.#live = out.live;
    this.#out = out;
  }

  /** The one header that an older revision has a use for; it is looked at when a call begins. */
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

  /** Sends nothing from now on. Drops its references: the table of a session's calls may keep this object for a while. */
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
    // Unlike `notify`, which is silent once the call is cancelled: the client must hear that it is no longer asked.
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
 * Where the messages of one legacy POST go: nowhere until there is something to say, then onto a stream that outlives
 * the connection. Several requests of a batch share one.
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

  /** A request failed. The answer to one whose caller lacks scopes says where to get them. */
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
    const failed = (error: unknown): void => this.endpoint.onWarning("A stream cannot be resumed", error);
    // Whatever is sent next waits for its turn behind this.
    void recover(() => stream.open(sink, canLeave ? retryMs : undefined), failed);
    return stream;
  }
}

/** Most streams kept of one session whose calls have ended; beyond that the oldest cannot be resumed any more. */
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
