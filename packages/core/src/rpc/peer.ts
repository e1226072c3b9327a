import { type Clock, systemClock } from "../async/index.ts";
import { ClosedError, RpcError } from "../errors/index.ts";
import type { RawJson } from "../json/index.ts";
import type { BrokenAnswer } from "./broken-answer.ts";
import type { Batch, Channel, Incoming, Invalid } from "./channel.ts";
import { type Answer, type Handler, Inbound } from "./inbound.ts";
import { Intake } from "./intake.ts";
import {
  type ErrorResponse,
  type Notification,
  type Request,
  type Response,
  toErrorBody,
} from "./message.ts";
import { Outbound, type RequestIds, type RequestOptions } from "./outbound.ts";
import { toId } from "./parse.ts";

export interface PeerOptions {
  /** Serves the other side's requests; without it every one of them is an unknown method. */
  readonly handle?: Handler;
  readonly notified?: (notification: Notification) => void;
  /** Whether a batch is legal right now; in MCP that is so for one revision only. */
  readonly acceptsBatch?: (batch: Batch) => boolean;
  /** Turns the error of a handler into the error that is sent; the default hides everything that is not an `RpcError`. */
  readonly toRpcError?: (thrown: unknown, request: Request) => RpcError;
  /** The error code for input that is not JSON; `-32700` unless a dialect wants another. */
  readonly parseErrorCode?: number;
  /** Called for input that was dropped: broken responses, answers to no request. */
  readonly dropped?: (what: string) => void;
  /** Most requests of the other side worked on at once. */
  readonly maxInFlight?: number;
  /** How our own requests are named; `counted`, from 1. A server that asks its client something wants `random`. */
  readonly requestIds?: RequestIds;
  readonly clock?: Clock;
}

/** One side of a channel: pairs responses with requests, runs every incoming request concurrently, cancels. */
export class Peer {
  readonly #channel: Channel;
  readonly #inbound: Inbound;
  readonly #outbound: Outbound;
  readonly #intake: Intake;
  readonly #receiver: Receiver;

  constructor(channel: Channel, options: PeerOptions = {}) {
    const { handle = methodNotFound, toRpcError = hideDetail, maxInFlight = 1024 } = options;
    const dropped = toDropped(options);
    const inbound = new Inbound(channel, { handle, toRpcError, maxInFlight });
    this.#channel = channel;
    this.#inbound = inbound;
    this.#outbound = new Outbound(channel, options.requestIds);
    this.#intake = new Intake(channel, {
      clock: options.clock ?? systemClock,
      underway: () => inbound.busy,
      start: (incoming) => this.#receiver.start(incoming),
      // A peer that cannot send an answer cannot tell the other side.
      onFailed: (error) => dropped(`an answer: ${String(error)}`),
    });
    this.#receiver = new Receiver({
      ...options,
      dropped,
      inbound,
      outbound: this.#outbound,
      intake: this.#intake,
    });
  }

  /**
   * Receives until the channel ends, then fails our own requests that still wait. Requests of the other side go on
   * until {@link Peer.abort}: a reader may have closed its sending half only. Requests of one that sends and does not read
   * are not started, and after some of them nothing more is read, so it cannot make us hold more and more. Call it once.
   */
  async run(): Promise<void> {
    const cause = await this.#receiver.receiveAll(this.#channel);
    this.#outbound.close(new ClosedError("outcome_unknown", "the other side is gone", { cause }));
  }

  /** From now on requests are refused; those that are being worked on may finish. */
  stop(): void {
    this.#inbound.stop();
    this.#intake.flush();
  }

  /**
   * Aborts every request that is being worked on, and refuses more. They are answered with `answer` if it is given, and
   * nothing else will be sent for any of them.
   */
  abort(answer?: RpcError): void {
    this.stop();
    const reason = answer === undefined ? "the other side is gone" : "the server stopped";
    this.#inbound.abort(new ClosedError("outcome_unknown", reason), answer);
  }

  /** Resolves when every request that was being worked on has ended, and its answer is taken. */
  async idle(): Promise<void> {
    await this.#inbound.idle();
    while (!this.#intake.isEmpty) await this.#intake.changed();
  }

  /** Sends a request and resolves with its result. Rejects with `RpcError`, `ClosedError` or the signal's reason. */
  request(method: string, params?: RawJson, options?: RequestOptions): Promise<RawJson> {
    return this.#outbound.request(method, params, options);
  }

  /** Fails the request of ours that a broken answer is for; false when that is not known. */
  fail(answer: BrokenAnswer, error: Error): boolean {
    return this.#outbound.failed(answer, error);
  }

  /** Sends a notification; resolves when the transport has taken it. */
  notify(method: string, params?: RawJson): Promise<void> {
    return this.#channel.send({ kind: "notification", method, params });
  }
}

interface ReceiverParts extends PeerOptions {
  readonly inbound: Inbound;
  readonly outbound: Outbound;
  readonly intake: Intake;
  readonly dropped: (what: string) => void;
}

/** Takes each incoming message to the part of a peer that it is for. */
class Receiver {
  readonly #parts: ReceiverParts;
  readonly #answer: Answer = (response) => this.#parts.intake.answers.send(response);

  constructor(parts: ReceiverParts) {
    this.#parts = parts;
  }

  /** Receives until the channel ends. Resolves with the error that ended it, if there was one. */
  async receiveAll(channel: Channel): Promise<unknown> {
    const { intake, dropped } = this.#parts;
    try {
      const incoming = channel[Symbol.asyncIterator]();
      while (await this.#receiveNext(incoming));
      while (intake.held.size > 0) await intake.changed();
      return undefined;
    } catch (error) {
      dropped(`the rest of the input: ${String(error)}`);
      return error;
    }
  }

  /** Starts a message that is answered. */
  start(incoming: Incoming): void {
    const { inbound } = this.#parts;
    if (incoming.kind === "request") inbound.serve(incoming, this.#answer);
    else if (incoming.kind === "batch") this.#serveBatch(incoming);
    else if (incoming.kind === "invalid") this.#answer(toRefusal(incoming, this.#parts));
  }

  /** A function of its own, so that it holds no message while it waits for the next. */
  async #receiveNext(messages: AsyncIterator<readonly Incoming[]>): Promise<boolean> {
    const next = await messages.next();
    if (next.done === true) return false;
    const { intake } = this.#parts;
    for (const incoming of next.value) {
      this.#receive(incoming);
      // A result is never held, and most messages of a client's channel are results.
      while (incoming.kind !== "result" && intake.held.isFull) await intake.changed();
    }
    return true;
  }

  #receive(incoming: Incoming): void {
    const { outbound, intake, dropped } = this.#parts;
    switch (incoming.kind) {
      case "notification":
        return this.#notified(incoming);
      case "result":
      case "error":
        if (!outbound.answered(incoming)) dropped(`a response to no request of ours, id ${incoming.id}`);
        return;
      case "invalid":
        if (incoming.isAnswerable) return intake.take(incoming);
        return dropped(`input that has no answer: ${incoming.error.message}`);
      case "request":
      case "batch":
        return intake.take(incoming);
    }
  }

  /** The answers of a batch leave together, as one array, when the last of them is there. */
  #serveBatch(batch: Batch): void {
    const { inbound, intake, acceptsBatch } = this.#parts;
    if (acceptsBatch?.(batch) !== true) {
      const error = new RpcError("rpc.invalid_request", "Batches exist in protocol revision 2025-03-26 only");
      return this.#answer({ kind: "error", id: undefined, error: toErrorBody(error) });
    }
    const responses: Response[] = [];
    let missing = 1;
    const done = (): void => {
      if (--missing === 0 && responses.length > 0) intake.answers.send(responses);
    };
    const collect: Answer = (response) => {
      responses.push(response);
      done();
    };
    for (const item of batch.items) {
      if (item.kind === "request") {
        missing++;
        inbound.serve(item, collect, done);
      } else if (item.kind === "invalid" && item.isAnswerable) responses.push(toRefusal(item, this.#parts));
      else this.#receive(item);
    }
    done();
  }

  #notified(notification: Notification): void {
    const { inbound, intake, notified, dropped } = this.#parts;
    if (notification.method === "notifications/cancelled") {
      const text = notification.params?.at("requestId")?.text;
      const id = text === undefined ? undefined : toId(text);
      if (id !== undefined && !intake.cancel(id))
        inbound.cancel(id, new DOMException("The caller cancelled the request", "AbortError"));
    }
    try {
      notified?.(notification);
    } catch (error) {
      dropped(`${notification.method}: ${String(error)}`);
    }
  }
}

/** Reports dropped input. A failure of the listener must not end the peer. */
function toDropped({ dropped }: PeerOptions): (what: string) => void {
  return (what) => {
    try {
      dropped?.(what);
    } catch {
      // There is no one else to tell.
    }
  };
}

function toRefusal({ id, error }: Invalid, { parseErrorCode = error.rpcCode }: PeerOptions): ErrorResponse {
  const code = error.code === "rpc.parse" ? parseErrorCode : error.rpcCode;
  return { kind: "error", id, error: { code, message: error.message } };
}

const methodNotFound: Handler = (request) =>
  Promise.reject(new RpcError("rpc.method_not_found", `Method not found: ${request.method}`));

const hideDetail = (thrown: unknown): RpcError =>
  thrown instanceof RpcError ? thrown : new RpcError("rpc.internal", "Internal error", { cause: thrown });
