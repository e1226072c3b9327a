import { andThen, type Awaitable, isPromise, tryThen } from "../../../async/awaitable.ts";
import type { Cancellation } from "../../../async/cancellation.ts";
import { LazyAbort } from "../../../async/lazy-abort.ts";
import { RpcError } from "../../../errors/rpc-error.ts";
import type { RawJson } from "../../../json/raw.ts";
import { encodeMessage, type Message, type Request, type Response } from "../../../jsonrpc/message.ts";
import type { HeaderLookup, ModernEra } from "../../../mcp/era.ts";
import type { WireContext } from "../../../mcp/server.ts";
import type { Accepted } from "../media-type.ts";
import { sseHeaders, toFrame } from "../sse.ts";
import type { Admitted } from "./admissions.ts";
import type { Endpoint } from "./endpoint.ts";
import type { FrameSink, HttpRequest, Reply } from "./reply.ts";
import { sendError, sendJson, toData, toErrorResponse } from "./send-json.ts";
import { toStatus } from "./status.ts";

/**
 * Serves one modern request: one call, one reply. The reply is JSON unless the call says something before its result.
 * A client that hangs up has cancelled.
 */
export function serveModern(
  request: Request,
  era: ModernEra,
  http: HttpRequest,
  reply: Reply,
  endpoint: Endpoint,
  accepted: Accepted,
  caller: string | undefined,
): Awaitable<void> {
  if (request.method === "subscriptions/listen" && !accepted.sse) {
    const text = "subscriptions/listen answers with an event stream: accept text/event-stream";
    return sendError(reply, 406, new RpcError("rpc.invalid_request", text), request.id);
  }
  const call = new ModernCall(era, http.header, reply, endpoint, accepted, caller);
  const answered = tryThen(
    () => endpoint.server.handle(request, call),
    (result) => call.finish(request, result),
    (error) => call.fail(request, error),
  );
  // What is answered already can be neither hung up on nor taken away.
  if (isPromise(answered)) call.goOn();
  return answered;
}

/** What is known about a modern request, and where what it says goes. */
class ModernCall implements WireContext, Admitted {
  readonly era: ModernEra;
  readonly headers: HeaderLookup;
  readonly caller: string | undefined;
  readonly #reply: Reply;
  readonly #endpoint: Endpoint;
  readonly #accepted: Accepted;
  readonly #abort = new LazyAbort();
  #sink: FrameSink | undefined;
  /** Among what goes on for callers, if it takes a while. */
  #number: number | undefined;
  /** Nobody is there to answer. */
  #isGone = false;
  #isOver = false;

  constructor(
    era: ModernEra,
    headers: HeaderLookup,
    reply: Reply,
    endpoint: Endpoint,
    accepted: Accepted,
    caller: string | undefined,
  ) {
    this.era = era;
    // What mirrors the body, and nothing else: who calls, and with which key, is not a tool's to know.
    this.headers = (name) => (name.startsWith("mcp-") ? headers(name) : undefined);
    this.caller = caller;
    this.#reply = reply;
    this.#endpoint = endpoint;
    this.#accepted = accepted;
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  get cancellation(): Cancellation {
    return this.#abort;
  }

  notify(method: string, params: RawJson): Awaitable<void> {
    if (this.#accepted.sse && !this.#abort.isAborted)
      return this.#write({ kind: "notification", method, params });
  }

  /** The answer takes a while: it may be that nobody is there for it any more, or that they may not have it. */
  goOn(): void {
    this.#reply.onHangUp(() => this.hangUp());
    if (!this.#isOver) this.#number = this.#endpoint.admissions.add(this);
  }

  finish(request: Request, result: RawJson): Awaitable<void> {
    if (this.#number !== undefined) this.#endpoint.admissions.delete(this.#number);
    const response = { kind: "result", id: request.id, result } as const;
    if (this.#sink !== undefined || !this.#accepted.json) return this.#end(response);
    this.#isOver = true;
    sendJson(this.#reply, 200, encodeMessage(response));
  }

  fail(request: Request, error: unknown): Awaitable<void> {
    if (this.#number !== undefined) this.#endpoint.admissions.delete(this.#number);
    if (!(error instanceof RpcError)) throw error;
    const status = toStatus(error, true);
    const isPlain = this.#sink === undefined && (this.#accepted.json || status !== 200);
    if (!isPlain) return this.#end(toErrorResponse(error, request.id));
    this.#isOver = true;
    sendError(this.#reply, status, error, request.id);
  }

  hangUp(): void {
    if (this.#isOver) return;
    this.#isGone = true;
    this.#abort.abort(new DOMException("The client hung up", "AbortError"));
  }

  /** It ends with an answer: the client is still there. */
  revoke(): void {
    if (!this.#isOver) this.#abort.abort(new DOMException("The key was taken away", "AbortError"));
  }

  #write(message: Message): Awaitable<void> {
    if (this.#isGone || this.#isOver) return;
    this.#sink ??= this.#endpoint.openSink(this.#reply, sseHeaders);
    return this.#sink.write(toFrame(toData(message)));
  }

  #end(response: Response): Awaitable<void> {
    const written = this.#write(response);
    this.#isOver = true;
    return andThen(written, () => this.#sink?.end());
  }
}
