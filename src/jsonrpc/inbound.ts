import { RpcError } from "../errors/rpc-error.ts";
import type { RawJson } from "../json/raw.ts";
import type { Channel } from "./channel.ts";
import { toErrorBody } from "./error-body.ts";
import type { Request, RequestId, Response } from "./message.ts";

/** What a handler may do while it works on one request. After the request is cancelled or answered, nothing is sent. */
export interface PeerContext {
  /** Aborted when the other side cancels the request or the channel ends. */
  readonly signal: AbortSignal;
  /** Sends a notification that belongs to this request; resolves when the transport has taken it. */
  notify(method: string, params: RawJson): Promise<void>;
}

/** The function on the wire side: one request in, one result out. What it throws becomes the error response. */
export type Handler<Context = PeerContext> = (request: Request, context: Context) => Promise<RawJson>;

/** Takes the one response of a request. */
export type Answer = (response: Response) => Promise<void>;

export interface InboundOptions {
  readonly handle: Handler;
  readonly toRpcError: (thrown: unknown, request: Request) => RpcError;
  readonly maxInFlight: number;
}

/** The requests of the other side that are being worked on. Their ids serve to cancel them, and for nothing else. */
export class Inbound {
  readonly #channel: Pick<Channel, "send">;
  readonly #options: InboundOptions;
  readonly #running = new Map<RequestId, AbortController>();

  constructor(channel: Pick<Channel, "send">, options: InboundOptions) {
    this.#channel = channel;
    this.#options = options;
  }

  /** Why a request cannot be started now, if so. */
  refusal(id: RequestId): RpcError | undefined {
    if (this.#running.has(id)) {
      return new RpcError("rpc.invalid_request", `The id ${id} is already in use by a request in flight`);
    }
    const { maxInFlight } = this.#options;
    if (this.#running.size < maxInFlight) return undefined;
    return new RpcError("rpc.internal", `Too many requests in flight; at most ${maxInFlight} at once`);
  }

  /** Runs the handler and gives its outcome to `answer`, unless the request was cancelled meanwhile. */
  async serve(request: Request, answer: Answer): Promise<void> {
    const { id } = request;
    const controller = new AbortController();
    const { signal } = controller;
    this.#running.set(id, controller);
    let isOpen = true;
    const notify = async (method: string, params: RawJson): Promise<void> => {
      if (isOpen && !signal.aborted) await this.#channel.send({ kind: "notification", method, params });
    };
    let response: Response;
    try {
      response = { kind: "result", id, result: await this.#options.handle(request, { signal, notify }) };
    } catch (error) {
      response = { kind: "error", id, error: toErrorBody(this.#options.toRpcError(error, request)) };
    }
    isOpen = false;
    if (this.#running.get(id) === controller) this.#running.delete(id);
    if (!signal.aborted) await answer(response);
  }

  /** Aborts one request. Its id is free again at once: nothing will be sent for it any more. */
  cancel(id: RequestId, reason: unknown): void {
    const controller = this.#running.get(id);
    this.#running.delete(id);
    controller?.abort(reason);
  }

  /** Aborts everything. */
  abort(reason: unknown): void {
    for (const controller of this.#running.values()) controller.abort(reason);
    this.#running.clear();
  }
}
