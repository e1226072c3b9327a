import { createDeferred, type Deferred } from "../async/deferred.ts";
import { ClosedError } from "../errors/closed-error.ts";
import { RpcError } from "../errors/rpc-error.ts";
import { RawJson } from "../json/raw.ts";
import type { Channel } from "./channel.ts";
import { type RequestId, type Response, toRequestId } from "./message.ts";

export interface RequestOptions {
  /** Aborting rejects at once, and tells the other side with `notifications/cancelled`. */
  readonly signal?: AbortSignal;
  /** Where to send it, if not on the usual channel: over HTTP a request may belong to another one's stream. */
  readonly via?: Pick<Channel, "send">;
  /** An id outside the usual count, for a probe: giving it up tells the other side nothing. */
  readonly id?: string;
}

/** The requests of our own that wait for their answers. */
export class Outbound {
  readonly #channel: Pick<Channel, "send">;
  readonly #pending = new Map<RequestId, Deferred<Response>>();
  #nextId = 1;
  #closed: ClosedError | undefined;

  constructor(channel: Pick<Channel, "send">) {
    this.#channel = channel;
  }

  /** Sends a request and resolves with its result. Rejects with `RpcError`, `ClosedError` or the signal's reason. */
  async request(method: string, params: RawJson | undefined, options: RequestOptions = {}): Promise<RawJson> {
    const { signal, via = this.#channel } = options;
    signal?.throwIfAborted();
    if (this.#closed !== undefined)
      throw new ClosedError("not_sent", "the channel is closed", { cause: this.#closed });
    const id = toRequestId(options.id ?? this.#nextId++);
    const answer = createDeferred<Response>();
    const onAbort = (): void => {
      answer.reject(signal?.reason);
      if (options.id !== undefined) return;
      const params = RawJson.fromText(`{"requestId":${id}}`);
      // A channel that is already closed has no one left to tell.
      via.send({ kind: "notification", method: "notifications/cancelled", params }).catch(() => {});
    };
    this.#pending.set(id, answer);
    signal?.addEventListener("abort", onAbort, { once: true });
    try {
      const [response] = await Promise.all([
        answer.promise,
        via.send({ kind: "request", id, method, params }),
      ]);
      if (response.kind === "result") return response.result;
      const { code, message, data } = response.error;
      throw new RpcError("rpc.other", message, { rpcCode: code, data: data?.value });
    } finally {
      this.#pending.delete(id);
      signal?.removeEventListener("abort", onAbort);
    }
  }

  /** Hands a response to the request it answers; false when there is none. */
  answered(response: Response): boolean {
    const pending = response.id === undefined ? undefined : this.#pending.get(response.id);
    pending?.resolve(response);
    return pending !== undefined;
  }

  /** Fails what still waits, and everything asked for later. */
  close(error: ClosedError): void {
    this.#closed ??= error;
    for (const pending of this.#pending.values()) pending.reject(error);
    this.#pending.clear();
  }
}
