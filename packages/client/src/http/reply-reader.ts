import { Buffer } from "node:buffer";
import type { IncomingHttpHeaders } from "node:http";
import { type Clock, sleep, type LeakyBucket } from "@junctor/core/async";
import { Pieces } from "@junctor/core/channel";
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
import { costOf, kibibyteMs } from "../link/index.ts";
import { mediaTypeOf, type ReplySink, WholeReply } from "./exchange.ts";

/**
 * Takes everything that is not an answer: notifications, a legacy server's requests, input that is not a message. If it
 * returns a promise, nothing more is read until that resolves.
 */
export type TakeMessage = (message: Exclude<Incoming, Response | Batch>) => Promise<void> | void;

/** Limits the unsolicited messages of one server, on all its streams together; see `costOf`. */
export interface Pace {
  readonly bucket: LeakyBucket;
  readonly clock: Clock;
  /** Aborts when the link is closed, which ends all pauses. */
  readonly signal: AbortSignal;
}

interface ReplyReaderOptions {
  /** The id of the request. Undefined for a stream of announcements, on which nothing is an answer. */
  readonly id?: RequestId;
  readonly maxBytes: number;
  readonly pace: Pace;
  readonly take: TakeMessage;
}

/** How much is read in one go: this many events, or fewer that cost this much. */
const maxEvents = 10;
const pieceMs = 2.5;

const noBytes = new Uint8Array(0);

/** Bytes of a stream besides its data that cost nothing, such as keep-alives. */
const freeIdleBytes = 4096;

/**
 * The price of an answer to a server's request, besides that of the request. The answer is an HTTP request of its own (0.5 ms of
 * processor time), and must be rare enough to delay fewer than one in a hundred calls to another server. For the same reason the
 * requests of a server take turns with all other work, one at a time.
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
  /** Events that are not parsed as messages yet. */
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

  /** A server that sends too many unsolicited messages is not read for a while, so that it has to wait. */
  chunk(bytes: Uint8Array): boolean | Promise<void> {
    const stream = this.#stream;
    if (!this.isStream || stream === undefined) return this.whole.chunk(bytes);
    if (bytes.length > 0) {
      this.#events = stream.read(bytes);
      this.#next = 0;
    }
    let costMs = 0;
    let busy: Promise<void> | undefined;
    let hasRequest = false;
    if (stream.idleBytes > freeIdleBytes) {
      costMs = (stream.idleBytes / 1024) * kibibyteMs;
      stream.idleBytes = 0;
    }
    const endMs = costMs + pieceMs;
    for (let count = 0; count < maxEvents && costMs < endMs && busy === undefined && !hasRequest; count++) {
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
        if (message.kind === "request") hasRequest = true;
        if (!isResponse) busy = this.#options.take(message) ?? busy;
      }
      if (this.answer !== undefined) return true;
    }
    const isAll = this.#next >= this.#events.length;
    // Drops the reference to a chunk that was read: a stream may be silent for hours.
    if (isAll) this.#events = [];
    const { bucket, clock, signal } = this.#options.pace;
    if (hasRequest) costMs += answerMs;
    const waitMs = costMs === 0 ? 0 : bucket.charge(costMs);
    if (waitMs > 0 || busy !== undefined)
      return Promise.all([busy, sleep(waitMs, clock, signal).catch(() => {})]).then(() => {});
    if (hasRequest && !isAll) return new Promise((resolve) => setImmediate(resolve));
    return isAll ? false : this.chunk(noBytes);
  }

  /** Throws for an answer that cannot be read: there will be no other answer. */
  #refuse({ answer, error }: Invalid): void {
    const { id } = this.#options;
    if (id !== undefined && answer !== undefined && (answer.id ?? id) === id)
      throw new RpcError("rpc.other", error.message, { cause: error });
  }

  /** Prepares for another response. */
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

/** One event of a stream. */
interface SseEvent {
  readonly event?: string | undefined;
  /** The id of this very event; see {@link SseReader.lastEventId}. */
  readonly id?: string | undefined;
  /** The bytes as they came, UTF-8 or not. They may lie in the chunk that brought them. */
  readonly data: Uint8Array;
}

const newline = 0x0a;
const carriageReturn = 0x0d;
const space = 0x20;
const colon = 0x3a;
const byteOrderMark = Buffer.from("\uFEFF");
const dataName = Buffer.from("data");
const eventName = Buffer.from("event");
const idName = Buffer.from("id");
const retryName = Buffer.from("retry");
const usualEvent = Buffer.from("message");
const joint = Uint8Array.of(newline);
const digits = /^[0-9]+$/;
/** A byte order mark that is not at the start of the stream is text. */
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/**
 * Reads an event stream chunk by chunk, by the rules of the WHATWG (HTML, "Interpreting an event stream"), except that an event
 * whose data is an empty line counts as an event. Comments and unknown fields are left out.
 *
 * Works on bytes: most events lie in one chunk and are handed out in place, without a copy.
 */
export class SseReader {
  /** The id most recently sent, on an event with data or without. */
  lastEventId: string | undefined;
  /** The wait the server asked for most recently. */
  retryMs: number | undefined;
  /** Bytes so far that are not data: comments, names, other fields. */
  idleBytes = 0;
  readonly #maxEventBytes: number;
  #isFirstLine = true;
  /** The last chunk ended with a carriage return: if a newline follows, it belongs to the same line end. */
  #isAfterReturn = false;
  /** The part of a line whose end has not come yet. */
  #line = new Pieces();
  /** What the event that has not ended yet holds so far; its data is one line, or the pieces of several. */
  #data: Uint8Array | Pieces | undefined;
  #event: string | undefined;
  #id: string | undefined;

  /** `resumed` is the reader of the stream that this one continues. */
  constructor(maxEventBytes: number, resumed?: SseReader) {
    this.#maxEventBytes = maxEventBytes;
    this.lastEventId = resumed?.lastEventId;
    this.retryMs = resumed?.retryMs;
  }

  /**
   * The events that are complete with this chunk, which must not change afterwards. Throws an `RpcError` for one over
   * the limit; the reader cannot be used after that.
   */
  read(chunk: Uint8Array): readonly SseEvent[] {
    const events: SseEvent[] = [];
    if (chunk.length === 0) return events;
    let start = this.#isAfterReturn && chunk[0] === newline ? 1 : 0;
    this.#isAfterReturn = chunk[chunk.length - 1] === carriageReturn;
    // Search again only after passing one: a chunk without returns is searched for them once.
    let nextNewline = find(newline, chunk, start);
    let nextReturn = find(carriageReturn, chunk, start);
    for (;;) {
      const end = Math.min(nextNewline, nextReturn);
      if (end === chunk.length) break;
      let event: SseEvent | undefined;
      if (this.#line.length === 0) event = this.#take(chunk, start, end);
      else {
        // A line whose beginning came in earlier chunks. Checked before joining, which takes twice its memory.
        this.#check(this.#line.length + end - start);
        this.#line.append(chunk.subarray(start, end));
        const line = this.#line.join();
        this.#line = new Pieces();
        event = this.#take(line, 0, line.length);
      }
      if (event !== undefined) events.push(event);
      start = end + 1;
      if (end === nextReturn && chunk[start] === newline) start++;
      if (nextNewline < start) nextNewline = find(newline, chunk, start);
      if (nextReturn < start) nextReturn = find(carriageReturn, chunk, start);
    }
    if (start < chunk.length) {
      this.#check(this.#line.length + chunk.length - start);
      this.#line.append(chunk.subarray(start));
    }
    return events;
  }

  /** Takes the line at `start`; a blank one ends an event. */
  #take(bytes: Uint8Array, start: number, end: number): SseEvent | undefined {
    this.#check(end - start);
    this.idleBytes++;
    if (this.#isFirstLine) {
      this.#isFirstLine = false;
      if (startsWith(byteOrderMark, bytes, start, end)) start += byteOrderMark.length;
    }
    if (start === end) return this.#finish();
    const data = valueOf(dataName, bytes, start, end);
    this.idleBytes += (data === -1 ? end : data) - start;
    if (data !== -1) {
      this.#data = joinData(this.#data, bytes.subarray(data, end));
      return undefined;
    }
    const event = valueOf(eventName, bytes, start, end);
    if (event !== -1) {
      this.#event = toEventName(bytes, event, end);
      return undefined;
    }
    const id = valueOf(idName, bytes, start, end);
    if (id !== -1) {
      const text = decoder.decode(bytes.subarray(id, end));
      if (!text.includes("\0")) this.#id = text;
      return undefined;
    }
    const retry = valueOf(retryName, bytes, start, end);
    const text = retry === -1 ? "" : decoder.decode(bytes.subarray(retry, end));
    if (digits.test(text)) this.retryMs = Number(text);
    return undefined;
  }

  #finish(): SseEvent | undefined {
    const event = this.#event;
    const id = this.#id;
    const data = this.#data instanceof Pieces ? this.#data.join() : this.#data;
    this.#data = undefined;
    this.#event = undefined;
    this.#id = undefined;
    // Not earlier: an event that was cut off must be sent again.
    if (id !== undefined) this.lastEventId = id;
    return data === undefined ? undefined : { event, id, data };
  }

  /** Checks the size of an event with one more line, wherever the line is cut. */
  #check(lineBytes: number): void {
    if ((this.#data?.length ?? 0) + lineBytes <= this.#maxEventBytes) return;
    this.#data = undefined;
    this.#line = new Pieces();
    throw new RpcError("rpc.other", `The server sent an event of more than ${this.#maxEventBytes} bytes`);
  }
}

/** The data of an event with one more line. */
function joinData(data: Uint8Array | Pieces | undefined, value: Uint8Array): Uint8Array | Pieces {
  if (data === undefined) return value;
  let pieces = data;
  if (!(pieces instanceof Pieces)) {
    pieces = new Pieces();
    pieces.append(data as Uint8Array);
  }
  pieces.append(joint);
  pieces.append(value);
  return pieces;
}

/** The index of the next such byte, or the length if there is none. */
function find(byte: number, bytes: Uint8Array, start: number): number {
  const at = bytes.indexOf(byte, start);
  return at === -1 ? bytes.length : at;
}

function startsWith(prefix: Uint8Array, bytes: Uint8Array, start: number, end: number): boolean {
  if (end - start < prefix.length) return false;
  for (let index = 0; index < prefix.length; index++)
    if (bytes[start + index] !== prefix[index]) return false;
  return true;
}

/** The index at which the value of this field begins, or -1 if the line is another field. A name alone has an empty value. */
function valueOf(name: Uint8Array, bytes: Uint8Array, start: number, end: number): number {
  if (!startsWith(name, bytes, start, end)) return -1;
  const next = start + name.length;
  if (next === end) return end;
  if (bytes[next] !== colon) return -1;
  return next + 1 < end && bytes[next + 1] === space ? next + 2 : next + 1;
}

function toEventName(bytes: Uint8Array, start: number, end: number): string | undefined {
  // Nearly every event of an MCP server has this name, and comparing costs less than decoding.
  const isUsual = end - start === usualEvent.length && startsWith(usualEvent, bytes, start, end);
  return isUsual ? "message" : decoder.decode(bytes.subarray(start, end)) || undefined;
}
