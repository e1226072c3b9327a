import {
  type Awaitable,
  isPromise,
  settled,
  type Cancellation,
  LazyAbort,
  fromSignal,
  Numbered,
} from "../async/index.ts";
import { ClosedError, RpcError } from "../errors/index.ts";
import { RawJson } from "../json/index.ts";
import type { BrokenAnswer, Channel } from "./channel.ts";
import {
  type ErrorBody,
  type Request,
  type RequestId,
  type Response,
  toErrorBody,
  toRequestId,
} from "./message.ts";

/** What a handler may do while it works on one request. After the request is cancelled or answered, nothing is sent. */
export interface PeerContext {
  /** Aborted when the other side cancels the request or the channel ends. */
  readonly cancellation: Cancellation;
  /** Sends a notification that belongs to this request; waits until the transport has taken it. */
  notify(method: string, params: RawJson): Awaitable<void>;
}

/** The function on the wire side: one request in, one result out. What it throws becomes the error response. */
export type Handler<Context = PeerContext> = (request: Request, context: Context) => Awaitable<RawJson>;

/** Takes the one response of a request. */
export type Answer = (response: Response) => void;

interface InboundOptions {
  readonly handle: Handler;
  readonly toRpcError: (thrown: unknown, request: Request) => RpcError;
  readonly maxInFlight: number;
}

/** The most bytes of params held for one channel; counting requests alone would let a few large ones fill the memory. */
const maxHeldBytes = 64 * 1024 * 1024;

/** The requests of the other side that are being worked on. Their ids are used only to cancel them. */
export class Inbound {
  readonly #channel: Pick<Channel, "send">;
  readonly #options: InboundOptions;
  readonly #running = new Map<RequestId, RunningRequest>();
  /** Handlers that have not ended, those of cancelled requests included, and the bytes of params they hold on to. */
  readonly #load = { handlers: 0, bytes: 0 };
  #isStopped = false;
  #onIdle: (() => void) | undefined;

  constructor(channel: Pick<Channel, "send">, options: InboundOptions) {
    this.#channel = channel;
    this.#options = options;
  }

  /** How many handlers have not ended. */
  get busy(): number {
    return this.#load.handlers;
  }

  /** Refuses every request from now on. */
  stop(): void {
    this.#isStopped = true;
  }

  /**
   * Runs the handler and gives its outcome to `answer`, unless the request was cancelled meanwhile: then `cancelled` is
   * called. At a limit the answer is a refusal.
   */
  serve(request: Request, answer: Answer, cancelled?: () => void): void {
    const refusal = this.#refusal(request.id);
    if (refusal !== undefined) return answer({ kind: "error", id: request.id, error: toErrorBody(refusal) });
    const running = new RunningRequest(this.#channel, request, answer, cancelled);
    this.#running.set(request.id, running);
    this.#load.handlers++;
    this.#load.bytes += running.bytes;
    const { id } = request;
    const succeed = (result: RawJson): void => {
      // Written now: a value that JSON cannot hold must fail where that can still be answered.
      void result.written;
      this.#finish(running, { kind: "result", id, result });
    };
    const fail = (error: unknown): void =>
      this.#finish(running, { kind: "error", id, error: toBody(error, request, this.#options) });
    try {
      const result = settled(this.#options.handle(request, running));
      if (isPromise(result)) result.then(succeed).catch(fail);
      else succeed(result);
    } catch (error) {
      fail(error);
    }
  }

  /** Why a request cannot be started now, if so. */
  #refusal(id: RequestId): RpcError | undefined {
    if (this.#running.has(id)) {
      return new RpcError("rpc.invalid_request", `The id ${id} is already in use by a request in flight`);
    }
    if (this.#isStopped) {
      const { code, delivery } = new ClosedError("not_sent", "the server is stopping");
      return new RpcError("rpc.internal", "The server is stopping", { data: { code, delivery } });
    }
    const { maxInFlight } = this.#options;
    if (this.#load.handlers >= maxInFlight) {
      return new RpcError("rpc.internal", `Too many requests in flight; at most ${maxInFlight} at once`);
    }
    if (this.#load.bytes <= maxHeldBytes) return undefined;
    return new RpcError(
      "rpc.internal",
      `Requests of more than ${maxHeldBytes} bytes are in flight; wait for some of them`,
    );
  }

  #finish(running: RunningRequest, response: Response): void {
    if (!running.isOpen) return;
    running.isOpen = false;
    if (this.#running.get(running.id) === running) this.#running.delete(running.id);
    if (!running.isGivenUp) {
      if (running.cancellation.isAborted) running.cancelled?.();
      else running.answer(response);
    }
    this.#load.bytes -= running.bytes;
    if (--this.#load.handlers === 0) this.#onIdle?.();
  }

  /** Resolves when no handler runs. */
  idle(): Promise<void> {
    if (this.#load.handlers === 0) return Promise.resolve();
    return new Promise((resolve) => {
      const before = this.#onIdle;
      this.#onIdle = (): void => {
        before?.();
        resolve();
      };
    });
  }

  /** Aborts one request. Its id is free again at once: nothing will be sent for it any more. */
  cancel(id: RequestId, reason: unknown): void {
    const running = this.#running.get(id);
    this.#running.delete(id);
    running?.cancellation.abort(reason);
  }

  /**
   * Aborts everything. Each request is answered with `answer`, if there is one: its client has
   * not cancelled it, and waits.
   */
  abort(reason: unknown, answer?: RpcError): void {
    for (const running of this.#running.values()) {
      if (answer !== undefined) running.giveUp(toErrorBody(answer));
      running.cancellation.abort(reason);
    }
    this.#running.clear();
  }
}

function toBody(error: unknown, request: Request, { toRpcError }: InboundOptions): ErrorBody {
  try {
    return toErrorBody(toRpcError(error, request));
  } catch (fault) {
    return toErrorBody(new RpcError("rpc.internal", "Internal error", { cause: fault }));
  }
}

/** One request while it is worked on. */
class RunningRequest implements PeerContext {
  readonly id: RequestId;
  readonly bytes: number;
  readonly #channel: Pick<Channel, "send">;
  readonly cancellation: LazyAbort = new LazyAbort();
  readonly answer: Answer;
  readonly cancelled: (() => void) | undefined;
  isOpen = true;
  /** Whether it was already answered, by us instead of its handler. */
  isGivenUp = false;

  constructor(
    channel: Pick<Channel, "send">,
    { id, params }: Request,
    answer: Answer,
    cancelled: (() => void) | undefined,
  ) {
    this.#channel = channel;
    this.answer = answer;
    this.cancelled = cancelled;
    this.id = id;
    this.bytes = params?.byteLength ?? 0;
  }

  async notify(method: string, params: RawJson): Promise<void> {
    if (!this.isOpen || this.cancellation.isAborted) return;
    try {
      await this.#channel.send({ kind: "notification", method, params });
    } catch (error) {
      // A client that cannot be notified will not get the answer either. The signal tells it; a handler that
      // does not wait for its notifications must not end the process by an unhandled rejection.
      if (!(error instanceof ClosedError)) throw error;
      this.cancellation.abort(error);
    }
  }

  /** Answers the request before its handler ends, unless its caller is gone. */
  giveUp(error: ErrorBody): void {
    if (this.cancellation.isAborted) return;
    this.isGivenUp = true;
    this.answer({ kind: "error", id: this.id, error });
  }
}

export interface RequestOptions {
  /** Aborting rejects at once, and tells the other side with `notifications/cancelled`. */
  readonly signal?: AbortSignal;
  /** Instead of `signal`. */
  readonly stop?: Cancellation;
  /** Where to send it, if not on the usual channel: over HTTP a request may belong to another one's stream. */
  readonly via?: Pick<Channel, "send">;
  /** An id outside the usual numbers, for a probe: giving it up tells the other side nothing. */
  readonly id?: string;
}

/**
 * How our requests are named. Numbers from 1 are cheap, and good where one process talks to one server. `random` is for
 * questions to clients: an answer may come after a restart, or to another replica, or from a client that guesses the ids of
 * others, and must never be taken for that to another question.
 */
export type RequestIds = "counted" | "random";

/** The requests of our own that wait for their answers. */
export class Outbound {
  readonly #channel: Pick<Channel, "send">;
  readonly #ids: RequestIds;
  readonly #counted = new Numbered<PendingRequest>();
  /** Requests whose ids are not counted. */
  readonly #named = new Map<RequestId, PendingRequest>();
  #closed: ClosedError | undefined;

  constructor(channel: Pick<Channel, "send">, ids: RequestIds = "counted") {
    this.#channel = channel;
    this.#ids = ids;
  }

  /** How many requests wait for an answer. */
  get size(): number {
    return this.#counted.size + this.#named.size;
  }

  /** Sends a request and resolves with its result. Rejects with `RpcError`, `ClosedError` or the signal's reason. */
  request(method: string, params: RawJson | undefined, options: RequestOptions = {}): Promise<RawJson> {
    const { via = this.#channel } = options;
    const stop = options.stop ?? (options.signal && fromSignal(options.signal));
    return new Promise((resolve, reject) => {
      if (stop?.isAborted === true) return reject(stop.reason);
      if (this.#closed !== undefined)
        return reject(new ClosedError("not_sent", "the channel is closed", { cause: this.#closed }));
      const pending = new PendingRequest(via, stop, resolve, reject);
      if (options.id !== undefined) pending.waitAs(toRequestId(options.id), this.#named, true);
      else if (this.#ids === "counted") pending.waitIn(this.#counted);
      else pending.waitAs(toRequestId(crypto.randomUUID()), this.#named);
      via.send({ kind: "request", id: pending.id, method, params }).catch(pending.reject);
    });
  }

  /** Hands a response to the request it answers; false when there is none. */
  answered(response: Response): boolean {
    const pending = response.id === undefined ? undefined : this.#find(response.id);
    if (pending === undefined) return false;
    if (response.kind === "result") pending.resolve(response.result);
    else {
      const { code, message, data } = response.error;
      pending.reject(new RpcError("rpc.other", message, { rpcCode: code, data: data?.value }));
    }
    return true;
  }

  /**
   * Fails the request that a broken answer is for: the one with its id, or the only one there is. Returns
   * false when that is not known.
   */
  failed({ id }: BrokenAnswer, error: Error): boolean {
    const all = [...this.#counted.values(), ...this.#named.values()];
    const pending = id === undefined ? (all.length === 1 ? all[0] : undefined) : this.#find(id);
    pending?.reject(error);
    return pending !== undefined;
  }

  /** Fails all pending requests, and all later ones. */
  close(error: ClosedError): void {
    this.#closed ??= error;
    for (const pending of [...this.#counted.values(), ...this.#named.values()]) pending.reject(error);
  }

  #find(id: RequestId): PendingRequest | undefined {
    return this.#counted.get(Number(id)) ?? this.#named.get(id);
  }
}

/** A request that waits for its answer until it is settled. */
class PendingRequest {
  id = "" as RequestId;
  readonly #via: Pick<Channel, "send">;
  readonly #stop: Cancellation | undefined;
  readonly #resolve: (result: RawJson) => void;
  readonly #reject: (reason: unknown) => void;
  #counted: Numbered<PendingRequest> | undefined;
  #named: Map<RequestId, PendingRequest> | undefined;
  #isProbe = false;

  constructor(
    via: Pick<Channel, "send">,
    stop: Cancellation | undefined,
    resolve: (result: RawJson) => void,
    reject: (reason: unknown) => void,
  ) {
    this.#via = via;
    this.#stop = stop;
    this.#resolve = resolve;
    this.#reject = reject;
    stop?.onAbort(this.#giveUp);
  }

  /** Waits under the next number, which becomes its id. */
  waitIn(counted: Numbered<PendingRequest>): void {
    this.#counted = counted;
    this.id = toRequestId(counted.add(this));
  }

  /** Waits under an id outside the numbers. */
  waitAs(id: RequestId, named: Map<RequestId, PendingRequest>, isProbe = false): void {
    this.#named = named;
    this.#isProbe = isProbe;
    this.id = id;
    named.set(id, this);
  }

  resolve(result: RawJson): void {
    this.#settle();
    this.#resolve(result);
  }

  readonly reject = (reason: unknown): void => {
    this.#settle();
    this.#reject(reason);
  };

  #settle(): void {
    this.#counted?.delete(Number(this.id));
    this.#named?.delete(this.id);
    this.#stop?.offAbort(this.#giveUp);
  }

  readonly #giveUp = (): void => {
    this.reject(this.#stop?.reason);
    if (this.#isProbe) return;
    const params = RawJson.fromText(`{"requestId":${this.id}}`);
    // A closed channel has no reader left.
    this.#via.send({ kind: "notification", method: "notifications/cancelled", params }).catch(() => {});
  };
}
