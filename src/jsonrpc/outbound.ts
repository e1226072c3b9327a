import { type Cancellation, fromSignal } from "../async/cancellation.ts";
import { ClosedError } from "../errors/closed-error.ts";
import { RpcError } from "../errors/rpc-error.ts";
import { RawJson } from "../json/raw.ts";
import type { Channel } from "./channel.ts";
import { type RequestId, type Response, toRequestId } from "./message.ts";

export interface RequestOptions {
  /** Aborting rejects at once, and tells the other side with `notifications/cancelled`. */
  readonly signal?: AbortSignal;
  /** Instead of `signal`. */
  readonly stop?: Cancellation;
  /** Where to send it, if not on the usual channel: over HTTP a request may belong to another one's stream. */
  readonly via?: Pick<Channel, "send">;
  /** An id outside the usual count, for a probe: giving it up tells the other side nothing. */
  readonly id?: string;
}

/** The requests of our own that wait for their answers. */
export class Outbound {
  readonly #channel: Pick<Channel, "send">;
  readonly #pending = new Map<RequestId, Pending>();
  #nextId = 1;
  #closed: ClosedError | undefined;

  constructor(channel: Pick<Channel, "send">) {
    this.#channel = channel;
  }

  /** Sends a request and resolves with its result. Rejects with `RpcError`, `ClosedError` or the signal's reason. */
  request(method: string, params: RawJson | undefined, options: RequestOptions = {}): Promise<RawJson> {
    const { via = this.#channel } = options;
    const stop = options.stop ?? (options.signal && fromSignal(options.signal));
    return new Promise((resolve, reject) => {
      if (stop?.isAborted === true) return reject(stop.reason);
      if (this.#closed !== undefined)
        return reject(new ClosedError("not_sent", "the channel is closed", { cause: this.#closed }));
      const id = toRequestId(options.id ?? this.#nextId++);
      const isProbe = options.id !== undefined;
      const pending = new Pending(this.#pending, { id, via, stop, isProbe }, resolve, reject);
      via.send({ kind: "request", id, method, params }).catch(pending.reject);
    });
  }

  /** Hands a response to the request it answers; false when there is none. */
  answered(response: Response): boolean {
    const pending = response.id === undefined ? undefined : this.#pending.get(response.id);
    if (pending === undefined) return false;
    if (response.kind === "result") pending.resolve(response.result);
    else {
      const { code, message, data } = response.error;
      pending.reject(new RpcError("rpc.other", message, { rpcCode: code, data: data?.value }));
    }
    return true;
  }

  /** Fails what still waits, and everything asked for later. */
  close(error: ClosedError): void {
    this.#closed ??= error;
    for (const pending of this.#pending.values()) pending.reject(error);
  }
}

interface PendingRequest {
  readonly id: RequestId;
  readonly via: Pick<Channel, "send">;
  readonly stop: Cancellation | undefined;
  readonly isProbe: boolean;
}

/** A request that waits for its answer, in the map of all that do, until it is settled. */
class Pending {
  readonly #all: Map<RequestId, Pending>;
  readonly #request: PendingRequest;
  readonly #resolve: (result: RawJson) => void;
  readonly #reject: (reason: unknown) => void;

  constructor(
    all: Map<RequestId, Pending>,
    request: PendingRequest,
    resolve: (result: RawJson) => void,
    reject: (reason: unknown) => void,
  ) {
    this.#all = all;
    this.#request = request;
    this.#resolve = resolve;
    this.#reject = reject;
    all.set(request.id, this);
    request.stop?.onAbort(this.#giveUp);
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
    const { id, stop } = this.#request;
    this.#all.delete(id);
    stop?.offAbort(this.#giveUp);
  }

  readonly #giveUp = (): void => {
    const { id, via, stop, isProbe } = this.#request;
    this.reject(stop?.reason);
    if (isProbe) return;
    const params = RawJson.fromText(`{"requestId":${id}}`);
    // A channel that is already closed has no one left to tell.
    via.send({ kind: "notification", method: "notifications/cancelled", params }).catch(() => {});
  };
}
