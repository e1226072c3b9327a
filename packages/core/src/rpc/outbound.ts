import { type Cancellation, fromSignal, Numbered } from "../async/index.ts";
import { ClosedError, RpcError } from "../errors/index.ts";
import { RawJson } from "../json/index.ts";
import type { BrokenAnswer } from "./broken-answer.ts";
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
  /** Those whose ids are not counted. */
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
   * Fails the request that a broken answer is for: the one with its id, or the only one there is. Gives false when that is
   * not known.
   */
  failed({ id }: BrokenAnswer, error: Error): boolean {
    const all = [...this.#counted.values(), ...this.#named.values()];
    const pending = id === undefined ? (all.length === 1 ? all[0] : undefined) : this.#find(id);
    pending?.reject(error);
    return pending !== undefined;
  }

  /** Fails what still waits, and everything asked for later. */
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

  /** Waits under an id outside the count. */
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
    // Giving up a probe tells the other side nothing.
    if (this.#isProbe) return;
    const params = RawJson.fromText(`{"requestId":${this.id}}`);
    // A channel that is already closed has no one left to tell.
    this.#via.send({ kind: "notification", method: "notifications/cancelled", params }).catch(() => {});
  };
}
