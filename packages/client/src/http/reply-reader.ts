import type { IncomingHttpHeaders } from "node:http";
import { type Clock, sleep, type LeakyBucket } from "@junctor/core/async";
import { costOf, kibibyteMs } from "@junctor/core/channel";
import { RpcError } from "@junctor/core/errors";
import { messageShape } from "@junctor/core/mcp";
import {
  type Batch,
  type Incoming,
  type Invalid,
  type RequestId,
  type Response,
  parseMessage,
} from "@junctor/core/rpc";
import { mediaTypeOf, type ReplySink } from "./exchange.ts";
import { type SseEvent, SseReader } from "./sse-reader.ts";
import { WholeReply } from "./whole-reply.ts";

/** Takes everything that is no answer: notifications, a legacy server's requests, input that is no message. Until a promise resolves nothing more is read. */
export type TakeMessage = (message: Exclude<Incoming, Response | Batch>) => Promise<void> | void;

/** The pace of what one server says unasked, on all its streams together; see `costOf`. */
export interface Pace {
  readonly bucket: LeakyBucket;
  readonly clock: Clock;
  /** Aborts when the link is closed: no one waits then. */
  readonly signal: AbortSignal;
}

interface ReplyReaderOptions {
  /** Of the request that is to be answered. Without it nothing is an answer: that is a stream of announcements. */
  readonly id?: RequestId;
  readonly maxBytes: number;
  readonly pace: Pace;
  readonly take: TakeMessage;
}

/** How much is read in one go: so many events, or fewer that cost so much. One that is no message is told, and is read alone. */
const maxEvents = 10;
const pieceMs = 2.5;

const noBytes = new Uint8Array(0);

/** Bytes of a stream besides its data that come for nothing, such as signs of life. */
const freeIdleBytes = 4096;

/**
 * The price of an answer to a server's request besides that of the request: it is an HTTP request of its own (0.5 ms of
 * processor time), and must come so rarely that fewer than one call in a hundred to another server meets one. For the same
 * reason the requests of a server take turns with all other work, one at a time.
 */
const answerMs = 22;

/**
 * Takes the responses that bring the answer to one request: a JSON body, or an event stream, resumed as often as needed.
 * Messages are passed on in the order they came, those beside the answer included.
 */
export class ReplyReader implements ReplySink {
  /** The last response: its status, its headers and, unless it is a stream, its body. */
  whole: WholeReply;
  isStream = false;
  answer: Response | undefined;
  /** How many events with data came. */
  events = 0;
  readonly #options: ReplyReaderOptions;
  #stream: SseReader | undefined;
  /** Events that came and are not read as messages yet. */
  #events: readonly SseEvent[] = [];
  #next = 0;

  constructor(options: ReplyReaderOptions) {
    this.#options = options;
    this.whole = new WholeReply(options.maxBytes);
  }

  head(status: number, headers: IncomingHttpHeaders): void {
    this.whole.head(status, headers);
    this.isStream = status === 200 && mediaTypeOf(headers) === "text/event-stream";
    // A stream that breaks before it brought an id is resumed after the id of the one before it.
    if (this.isStream) this.#stream = new SseReader(this.#options.maxBytes, this.#stream);
  }

  /** A server that says too much unasked is not read from for a while, so that it has to wait. */
  chunk(bytes: Uint8Array): boolean | Promise<void> {
    const stream = this.#stream;
    if (!this.isStream || stream === undefined) return this.whole.chunk(bytes);
    if (bytes.length > 0) {
      this.#events = stream.read(bytes);
      this.#next = 0;
    }
    let costMs = 0;
    let busy: Promise<void> | undefined;
    let isAsked = false;
    if (stream.idleBytes > freeIdleBytes) {
      costMs = (stream.idleBytes / 1024) * kibibyteMs;
      stream.idleBytes = 0;
    }
    const endMs = costMs + pieceMs;
    for (let count = 0; count < maxEvents && costMs < endMs && busy === undefined && !isAsked; count++) {
      const data = this.#events[this.#next++]?.data;
      if (data === undefined) break;
      if (data.length === 0) continue;
      this.events++;
      const incoming = parseMessage(data, { shape: messageShape });
      // Batches exist in 2025-03-26 only; they are harmless elsewhere.
      for (const message of incoming.kind === "batch" ? incoming.items : [incoming]) {
        const isResponse = message.kind === "result" || message.kind === "error";
        if (isResponse && message.id !== undefined && message.id === this.#options.id) this.answer = message;
        else costMs += costOf(message, () => false);
        if (message.kind === "invalid") this.#refuse(message);
        if (message.kind === "request") isAsked = true;
        if (!isResponse) busy = this.#options.take(message) ?? busy;
      }
      if (this.answer !== undefined) return true;
    }
    const isAll = this.#next >= this.#events.length;
    // Drops the reference to a chunk that was read: a stream may be silent for hours.
    if (isAll) this.#events = [];
    const { bucket, clock, signal } = this.#options.pace;
    if (isAsked) costMs += answerMs;
    const waitMs = costMs === 0 ? 0 : bucket.charge(costMs);
    if (waitMs > 0 || busy !== undefined)
      return Promise.all([busy, sleep(waitMs, clock, signal).catch(() => {})]).then(() => {});
    if (isAsked && !isAll) return new Promise((resolve) => setImmediate(resolve));
    return isAll ? false : this.chunk(noBytes);
  }

  /** Throws for an answer that cannot be read: there will be no other. */
  #refuse({ answer, error }: Invalid): void {
    const { id } = this.#options;
    if (id !== undefined && answer !== undefined && (answer.id ?? id) === id)
      throw new RpcError("rpc.other", error.message, { cause: error });
  }

  /** Another response is to come. */
  rewind(): void {
    this.whole = new WholeReply(this.#options.maxBytes);
    this.isStream = false;
  }

  /** The id to resume after. */
  get lastEventId(): string | undefined {
    return this.#stream?.lastEventId;
  }

  get retryMs(): number | undefined {
    return this.#stream?.retryMs;
  }
}
