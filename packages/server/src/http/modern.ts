import { andThen, type Awaitable, isPromise, tryThen, LazyAbort } from "@junctor/core/async";
import { givenUp } from "@junctor/core/channel";
import { ClosedError, RpcError, toStatus } from "@junctor/core/errors";
import type { RawJson } from "@junctor/core/json";
import type { Caller, HeaderLookup, ModernEra, Observation, WireContext } from "@junctor/core/mcp";
import { encodeMessage, type Message, type Request, type RequestId, type Response } from "@junctor/core/rpc";
import { scopeHeaders } from "./admit.ts";
import { atExpiry, type Endpoint, refuseGreedy } from "./endpoint.ts";
import { type Admission, type Admitted, ownerOf } from "./guard.ts";
import {
  type Accepted,
  type FrameSink,
  type HttpHeaders,
  refuse,
  sendJson,
  sseHeaders,
  toData,
  toErrorResponse,
  toFrame,
} from "./reply.ts";

/** Why a call is given up whose connection is gone. */
export const hungUp = "The client hung up";

/**
 * One modern request: one call, one reply. The reply is JSON unless the call says something before its result. A client
 * that hangs up has cancelled.
 *
 * More than 15 members, because it is the wire context, the reply and the admission of its call at once: an object for
 * each of them would cost every call.
 */
export class ModernCall implements WireContext, Admitted {
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
  /** Declared, so that calls that are observed have the same shape as those that are not. */
  observation: Observation | undefined = undefined;

  constructor(era: ModernEra, accepted: Accepted, admission: Admission, endpoint: Endpoint) {
    const { header } = admission.http;
    this.era = era;
    // Only the headers that are about the request: a tool must not learn the caller's credentials.
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
    // A call that was answered at once can be neither hung up on nor revoked.
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

  /** The server stops, and its client must hear that the outcome is not known. */
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
