import { ClosedError } from "../errors/closed-error.ts";
import { RpcError } from "../errors/rpc-error.ts";
import type { RawJson } from "../json/raw.ts";
import type { Batch, Channel, Incoming, Invalid } from "./channel.ts";
import { toErrorBody } from "./error-body.ts";
import { type Answer, type Handler, Inbound } from "./inbound.ts";
import type { ErrorResponse, Notification, Request, RequestId, Response } from "./message.ts";
import { Outbound, type RequestOptions } from "./outbound.ts";

export interface PeerOptions {
  /** Serves the other side's requests; without it every one of them is an unknown method. */
  readonly handle?: Handler;
  readonly notified?: (notification: Notification) => void;
  /** Whether a batch is legal right now; in MCP that is so for one revision only. */
  readonly acceptsBatch?: () => boolean;
  /** Turns what a handler threw into what is sent; the default hides everything that is not an `RpcError`. */
  readonly toRpcError?: (thrown: unknown, request: Request) => RpcError;
  /** The code answered for what is not JSON; `-32700` unless a dialect wants another. */
  readonly parseErrorCode?: number;
  /** Told about input that was dropped: broken responses, answers to nobody. */
  readonly dropped?: (what: string) => void;
  /** Most requests of the other side worked on at once. */
  readonly maxInFlight?: number;
}

/** One side of a channel: pairs responses with requests, runs every incoming request concurrently, cancels. */
export class Peer {
  readonly #channel: Channel;
  readonly #options: PeerOptions;
  readonly #inbound: Inbound;
  readonly #outbound: Outbound;
  readonly #work = new Set<Promise<void>>();

  constructor(channel: Channel, options: PeerOptions = {}) {
    const { handle = methodNotFound, toRpcError = hideDetail, maxInFlight = 1024 } = options;
    this.#channel = channel;
    this.#options = options;
    this.#inbound = new Inbound(channel, { handle, toRpcError, maxInFlight });
    this.#outbound = new Outbound(channel);
  }

  /**
   * Receives until the channel ends, then fails our own requests that still wait. What runs for the other side goes on
   * until {@link Peer.abort}: a reader may have closed its sending half only. Call it once.
   */
  async run(): Promise<void> {
    let cause: unknown;
    try {
      for await (const incoming of this.#channel) {
        const congestion = this.#receive(incoming);
        if (congestion !== undefined) await congestion;
      }
    } catch (error) {
      cause = error;
    }
    this.#outbound.close(new ClosedError("outcome_unknown", "the other side is gone", { cause }));
  }

  /** Aborts every request that is being worked on; nothing will be sent for any of them. */
  abort(): void {
    this.#inbound.abort(new ClosedError("outcome_unknown", "the other side is gone"));
  }

  /** Resolves when every request that was being worked on has ended. */
  async idle(): Promise<void> {
    while (this.#work.size > 0) await Promise.all(this.#work);
  }

  /** Sends a request and resolves with its result. Rejects with `RpcError`, `ClosedError` or the signal's reason. */
  request(method: string, params?: RawJson, options?: RequestOptions): Promise<RawJson> {
    return this.#outbound.request(method, params, options);
  }

  /** Sends a notification; resolves when the transport has taken it. */
  notify(method: string, params?: RawJson): Promise<void> {
    return this.#channel.send({ kind: "notification", method, params });
  }

  /** Returns a promise when reading must wait for the writer; that bounds what a flooding peer makes us hold. */
  #receive(incoming: Incoming): Promise<void> | undefined {
    switch (incoming.kind) {
      case "request":
        return this.#serve(incoming, (response) => this.#channel.send(response));
      case "notification":
        this.#notified(incoming);
        return undefined;
      case "result":
      case "error":
        if (!this.#outbound.answered(incoming))
          this.#dropped(`a response to no request of ours, id ${incoming.id}`);
        return undefined;
      case "invalid":
        if (incoming.isAnswerable) return this.#track(this.#channel.send(this.#refusal(incoming)));
        this.#dropped(`what wants no answer: ${incoming.error.message}`);
        return undefined;
      case "batch":
        return this.#receiveBatch(incoming);
    }
  }

  #serve(request: Request, answer: Answer): Promise<void> | undefined {
    const refusal = this.#inbound.refusal(request.id);
    if (refusal !== undefined) {
      return this.#track(answer({ kind: "error", id: request.id, error: toErrorBody(refusal) }));
    }
    void this.#track(this.#inbound.serve(request, answer));
    return undefined;
  }

  /** The answers of a batch leave together, as one array, when the last of them is there. */
  #receiveBatch(batch: Batch): Promise<void> | undefined {
    if (this.#options.acceptsBatch?.() !== true) {
      const error = new RpcError("rpc.invalid_request", "Batches exist in protocol revision 2025-03-26 only");
      return this.#track(this.#channel.send({ kind: "error", id: undefined, error: toErrorBody(error) }));
    }
    const responses: Response[] = [];
    const served: Promise<void>[] = [];
    for (const item of batch.items) {
      if (item.kind === "request") served.push(this.#serveInBatch(item, responses));
      else if (item.kind === "invalid" && item.isAnswerable) responses.push(this.#refusal(item));
      else void this.#receive(item);
    }
    const sendAll = async (): Promise<void> => {
      await Promise.all(served);
      if (responses.length > 0) await this.#channel.send(responses);
    };
    void this.#track(sendAll());
    return undefined;
  }

  async #serveInBatch(request: Request, responses: Response[]): Promise<void> {
    const refusal = this.#inbound.refusal(request.id);
    if (refusal !== undefined) responses.push({ kind: "error", id: request.id, error: toErrorBody(refusal) });
    else await this.#inbound.serve(request, async (response) => void responses.push(response));
  }

  #notified(notification: Notification): void {
    if (notification.method === "notifications/cancelled") {
      const id = notification.params?.at("requestId")?.text as RequestId | undefined;
      if (id !== undefined)
        this.#inbound.cancel(id, new DOMException("The caller cancelled the request", "AbortError"));
    }
    this.#options.notified?.(notification);
  }

  #refusal({ id, error }: Invalid): ErrorResponse {
    const { parseErrorCode = error.rpcCode } = this.#options;
    const code = error.code === "rpc.parse" ? parseErrorCode : error.rpcCode;
    return { kind: "error", id, error: { code, message: error.message } };
  }

  #track(work: Promise<void>): Promise<void> {
    // The only thing that fails here is sending, and a peer that cannot send has no one left to tell.
    const settled = work.catch((error: unknown) => this.#dropped(`an answer: ${String(error)}`));
    this.#work.add(settled);
    void settled.then(() => this.#work.delete(settled));
    return settled;
  }

  #dropped(what: string): void {
    this.#options.dropped?.(what);
  }
}

const methodNotFound: Handler = (request) =>
  Promise.reject(new RpcError("rpc.method_not_found", `Method not found: ${request.method}`));

const hideDetail = (thrown: unknown): RpcError =>
  thrown instanceof RpcError ? thrown : new RpcError("rpc.internal", "Internal error", { cause: thrown });
