import { type Awaitable, isPromise, settled, type Cancellation, LazyAbort } from "../async/index.ts";
import { ClosedError, RpcError } from "../errors/index.ts";
import type { RawJson } from "../json/index.ts";
import type { Channel } from "./channel.ts";
import { type ErrorBody, type Request, type RequestId, type Response, toErrorBody } from "./message.ts";

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

/** Most bytes of params held for one channel; counting requests alone would let a few large ones fill the memory. */
const maxHeldBytes = 64 * 1024 * 1024;

/** The requests of the other side that are being worked on. Their ids serve to cancel them, and for nothing else. */
export class Inbound {
  readonly #channel: Pick<Channel, "send">;
  readonly #options: InboundOptions;
  readonly #running = new Map<RequestId, Task>();
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
    const task = new Task(this.#channel, request, answer, cancelled);
    this.#running.set(request.id, task);
    this.#load.handlers++;
    this.#load.bytes += task.bytes;
    const { id } = request;
    const succeed = (result: RawJson): void => {
      // Written now: a value that JSON cannot hold must fail where that can still be answered.
      void result.written;
      this.#finish(task, { kind: "result", id, result });
    };
    const fail = (error: unknown): void =>
      this.#finish(task, { kind: "error", id, error: toBody(error, request, this.#options) });
    try {
      const result = settled(this.#options.handle(request, task));
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

  #finish(task: Task, response: Response): void {
    if (!task.isOpen) return;
    task.isOpen = false;
    if (this.#running.get(task.id) === task) this.#running.delete(task.id);
    if (!task.isGivenUp) {
      if (task.cancellation.isAborted) task.cancelled?.();
      else task.answer(response);
    }
    this.#load.bytes -= task.bytes;
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
    const task = this.#running.get(id);
    this.#running.delete(id);
    task?.cancellation.abort(reason);
  }

  /** Aborts everything. Each request is answered with `answer`, if there is one: only its client knows that it wants none. */
  abort(reason: unknown, answer?: RpcError): void {
    for (const task of this.#running.values()) {
      if (answer !== undefined) task.giveUp(toErrorBody(answer));
      task.cancellation.abort(reason);
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
class Task implements PeerContext {
  readonly id: RequestId;
  readonly bytes: number;
  readonly #channel: Pick<Channel, "send">;
  readonly cancellation: LazyAbort = new LazyAbort();
  readonly answer: Answer;
  readonly cancelled: (() => void) | undefined;
  isOpen = true;
  /** It is answered already, by us instead of its handler. */
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
      // A client that cannot be notified will not get the answer either. The signal says so; a handler that does not wait
      // for its notifications must not end the process by a rejection without a handler.
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
