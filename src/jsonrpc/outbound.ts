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

/** A request that waits for its answer. */
interface Pending {
  readonly resolve: (result: RawJson) => void;
  readonly reject: (reason: unknown) => void;
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
      const settle = (): void => {
        this.#pending.delete(id);
        stop?.offAbort(onAbort);
      };
      const fail = (reason: unknown): void => {
        settle();
        reject(reason);
      };
      const onAbort = (): void => {
        fail(stop?.reason);
        if (options.id !== undefined) return;
        const cancelled = RawJson.fromText(`{"requestId":${id}}`);
        // A channel that is already closed has no one left to tell.
        via
          .send({ kind: "notification", method: "notifications/cancelled", params: cancelled })
          .catch(() => {});
      };
      this.#pending.set(id, {
        resolve: (result) => {
          settle();
          resolve(result);
        },
        reject: fail,
      });
      stop?.onAbort(onAbort);
      via.send({ kind: "request", id, method, params }).catch(fail);
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
