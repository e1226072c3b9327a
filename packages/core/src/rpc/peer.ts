import { type Clock, systemClock } from "../async/index.ts";
import { ClosedError, RpcError } from "../errors/index.ts";
import type { RawJson } from "../json/index.ts";
import type { Batch, BrokenAnswer, Channel, Incoming, Invalid } from "./channel.ts";
import {
  type ErrorResponse,
  type Notification,
  type Request,
  type Response,
  toErrorBody,
  type RequestId,
} from "./message.ts";
import { toId } from "./parse.ts";
import {
  type Answer,
  type Handler,
  Inbound,
  Outbound,
  type RequestIds,
  type RequestOptions,
} from "./requests.ts";

export interface PeerOptions {
  /** Serves the other side's requests; without it every one of them is an unknown method. */
  readonly handle?: Handler;
  readonly notified?: (notification: Notification) => void;
  /** Whether a batch is legal right now; in MCP, one revision only has batches. */
  readonly acceptsBatch?: (batch: Batch) => boolean;
  /** Turns the error of a handler into the error that is sent; the default hides everything that is not an `RpcError`. */
  readonly toRpcError?: (thrown: unknown, request: Request) => RpcError;
  /** The error code for input that is not JSON; `-32700` unless a dialect wants another. */
  readonly parseErrorCode?: number;
  /** Called for input that was dropped: broken responses, answers to no request. */
  readonly dropped?: (what: string) => void;
  /** The most requests of the other side worked on at once. */
  readonly maxInFlight?: number;
  /**
   * How our own requests are named; `counted` by default. A server that asks its client
   * questions needs `random`.
   */
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
   * Receives until the channel ends, then fails our own requests that still wait. Requests of the other side
   * go on until {@link Peer.abort}: a reader may have closed its sending half only. If the other side sends
   * but does not read, its requests are held, and after some of them nothing more is read, so memory stays
   * bounded. Call it once.
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

/** Hands each incoming message to the part of a peer that it is for. */
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

  /** Starts a message that needs an answer. */
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
      // Nothing else can report it.
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

/** How far the transport may be behind with our answers, in number and in characters, before no request is started. */
const maxUnsent = 64;
const maxUnsentLength = 16 * 1024 * 1024;
/** The most characters of answers that wait for the other side, including those expected from requests underway. */
const maxExpectedLength = 64 * 1024 * 1024;
/** The expected length of an answer until some have been sent. */
const firstExpected = 1024 * 1024;
/** How long requests are held while the other side takes everything we send; then this many of them are started. */
const holdMs = 100;
const maxRelieved = 64;
/** The most messages that were read and wait to be started, in number and in bytes; beyond that nothing more is read. */
const maxHeld = 1024;
const maxHeldBytes = 4 * 1024 * 1024;

interface IntakeOptions {
  readonly clock: Clock;
  /** How many requests are worked on. */
  readonly underway: () => number;
  /** Starts what waited. */
  readonly start: (incoming: Incoming) => void;
  /** Called when an answer could not be sent. */
  readonly onFailed: (error: unknown) => void;
}

/** Messages that were read and are not started yet. */
class HeldMessages {
  readonly #messages: Incoming[] = [];
  #bytes = 0;

  get size(): number {
    return this.#messages.length;
  }

  /** Whether too much is held to read more. */
  get isFull(): boolean {
    return this.#messages.length >= maxHeld || this.#bytes > maxHeldBytes;
  }

  push(incoming: Incoming): void {
    this.#messages.push(incoming);
    this.#bytes += bytesOf(incoming);
  }

  /** Drops a request; false when there is no such request. */
  cancel(id: RequestId): boolean {
    const index = this.#messages.findIndex((incoming) => incoming.kind === "request" && incoming.id === id);
    const [cancelled] = index === -1 ? [] : this.#messages.splice(index, 1);
    if (cancelled === undefined) return false;
    this.#bytes -= bytesOf(cancelled);
    return true;
  }

  /** Starts messages in order for as long as `mayStart` allows, and returns how many. */
  start(mayStart: () => boolean, start: (incoming: Incoming) => void): number {
    let started = 0;
    while (this.#messages.length > 0 && mayStart()) {
      // Taken out first: the message may end the peer, which starts the rest.
      const incoming = this.#messages.shift() as Incoming;
      this.#bytes -= bytesOf(incoming);
      start(incoming);
      started++;
    }
    return started;
  }

  clear(): void {
    this.#messages.length = 0;
    this.#bytes = 0;
  }
}

/** The answers of a peer that the transport has not taken yet. */
class UnsentAnswers {
  readonly #channel: Pick<Channel, "send">;
  readonly #onTaken: (failure?: { readonly error: unknown }) => void;
  #count = 0;
  #length = 0;
  /** Characters of an answer: grows at once with a longer one, and shrinks slowly. */
  #expected = firstExpected;
  /** The last answers that the transport will take in one write: one promise to watch instead of one for each. */
  #lastWrite: { readonly taken: Promise<void>; count: number; length: number } | undefined;

  constructor(channel: Pick<Channel, "send">, onTaken: (failure?: { readonly error: unknown }) => void) {
    this.#channel = channel;
    this.#onTaken = onTaken;
  }

  get count(): number {
    return this.#count;
  }

  /** Sends an answer. It waits for as long as the other side takes. */
  send(answer: Response | readonly Response[]): void {
    const taken = this.#channel.send(answer);
    const length = lengthOf(answer);
    this.#expected = Math.max(length, (7 * this.#expected + length) / 8);
    this.#count++;
    this.#length += length;
    if (this.#lastWrite?.taken === taken) {
      this.#lastWrite.count++;
      this.#lastWrite.length += length;
      return;
    }
    const write = { taken, count: 1, length };
    this.#lastWrite = write;
    const onTaken = (failure?: { readonly error: unknown }): void => {
      this.#count -= write.count;
      this.#length -= write.length;
      this.#onTaken(failure);
    };
    taken.then(
      () => onTaken(),
      (error: unknown) => onTaken({ error }),
    );
  }

  /** Whether the transport is so far behind that no request is to be started. */
  get areTooMany(): boolean {
    return this.#count >= maxUnsent || this.#length > maxUnsentLength;
  }

  /** Whether there is room for the answer to one more request, beside those to the requests underway. */
  hasRoom(underway: number): boolean {
    if (this.areTooMany) return false;
    return underway === 0 || this.#length + underway * this.#expected <= maxExpectedLength;
  }
}

/**
 * The pace of a peer. Requests are started as fast as the other side takes the answers: when too much waits
 * for a slow reader, requests are held, and when too many are held, nothing more is read. No answer is
 * dropped. The length of answers to requests underway is not known in advance, so they are expected to be as
 * long as those before them.
 */
class Intake {
  readonly held: HeldMessages = new HeldMessages();
  readonly answers: UnsentAnswers;
  readonly #options: IntakeOptions;
  #stopTimer: (() => void) | undefined;
  #waiting: (() => void)[] = [];

  constructor(channel: Pick<Channel, "send">, options: IntakeOptions) {
    this.#options = options;
    this.answers = new UnsentAnswers(channel, (failure) => {
      if (failure !== undefined) {
        options.onFailed(failure.error);
        // The reader is gone: requests that are held have no reader.
        this.held.clear();
      }
      this.#startHeld(() => this.#hasRoom());
      this.#changed();
    });
  }

  /** Whether nothing is held, and every answer is taken. */
  get isEmpty(): boolean {
    return this.answers.count === 0 && this.held.size === 0;
  }

  /** Starts a message, now or when the other side has taken enough. */
  take(incoming: Incoming): void {
    const isPing = incoming.kind === "request" && incoming.method === "ping" && !this.answers.areTooMany;
    if (isPing || (this.held.size === 0 && this.#hasRoom())) return this.#options.start(incoming);
    this.held.push(incoming);
    this.#relieveSoon();
  }

  /** Drops a request that is held; false when there is no such request. */
  cancel(id: RequestId): boolean {
    const isCancelled = this.held.cancel(id);
    if (isCancelled) this.#changed();
    return isCancelled;
  }

  /** Starts everything that is held, whether there is room or not: the peer refuses all of it from now on. */
  flush(): void {
    this.#startHeld(() => true);
  }

  /** Resolves when an answer was taken, or a message that was held is started or cancelled. */
  changed(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  #hasRoom(): boolean {
    return this.answers.hasRoom(this.#options.underway());
  }

  /** Requests may take long and have short answers: they are not held forever while the other side keeps up. */
  #relieveSoon(): void {
    if (this.held.size === 0 || this.answers.count > 0) return;
    this.#stopTimer ??= this.#options.clock.timer(holdMs, () => {
      this.#stopTimer = undefined;
      if (this.answers.count > 0) return;
      let relieved = 0;
      this.#startHeld(() => !this.answers.areTooMany && relieved++ < maxRelieved);
    });
  }

  #startHeld(mayStart: () => boolean): void {
    if (this.held.size > 0) {
      if (this.held.start(mayStart, this.#options.start) > 0) this.#changed();
      this.#relieveSoon();
    }
    if (this.held.size === 0) {
      this.#stopTimer?.();
      this.#stopTimer = undefined;
    }
  }

  #changed(): void {
    if (this.#waiting.length === 0) return;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }
}

/** About how much memory a held message takes. After a batch, which may be of any size, nothing more is read. */
function bytesOf(incoming: Incoming): number {
  if (incoming.kind === "batch") return maxHeldBytes + 1;
  return incoming.kind === "request" ? (incoming.params?.byteLength ?? 0) : 0;
}

/** About how long an answer is; errors are short. */
function lengthOf(answer: Response | readonly Response[]): number {
  if (Array.isArray(answer))
    return (answer as readonly Response[]).reduce((sum, item) => sum + lengthOf(item), 0);
  const response = answer as Response;
  if (response.kind === "error") return 0;
  const { written } = response.result;
  return typeof written === "string" ? written.length : response.result.byteLength;
}
