import type { IncomingHttpHeaders } from "node:http";
import type { Batch, Incoming } from "../../../jsonrpc/channel.ts";
import type { RequestId, Response } from "../../../jsonrpc/message.ts";
import { parseMessage, parsePieced } from "../../../jsonrpc/parse.ts";
import { messageShape } from "../../../mcp/shape.ts";
import { type ReplySink, WholeReply, mediaTypeOf } from "./exchange.ts";
import { SseReader } from "./sse-reader.ts";

const nothing = new Uint8Array(0);

/** Takes what is no answer: notifications, a legacy server's requests, nonsense. */
export type TakeMessage = (message: Exclude<Incoming, Response | Batch>) => void;

/**
 * Takes the responses that bring the answer to one request: a JSON body, or an event stream, resumed as often as needed.
 * Messages are passed on in the order they came, those beside the answer included.
 */
export class ReplyReader implements ReplySink {
  status = 0;
  headers: IncomingHttpHeaders = {};
  isStream = false;
  answer: Response | undefined;
  /** How many events with data came. */
  events = 0;
  readonly #id: RequestId | undefined;
  readonly #take: TakeMessage;
  readonly #maxBytes: number;
  #whole: WholeReply | undefined;
  #stream: SseReader | undefined;
  #lastEventId: string | undefined;
  #retryMs: number | undefined;

  /** Without an id nothing is an answer: that is a stream of announcements. */
  constructor(id: RequestId | undefined, maxBytes: number, take: TakeMessage) {
    this.#id = id;
    this.#take = take;
    this.#maxBytes = maxBytes;
  }

  head(status: number, headers: IncomingHttpHeaders): void {
    this.status = status;
    this.headers = headers;
    this.isStream = status === 200 && mediaTypeOf(headers) === "text/event-stream";
    this.#lastEventId = this.lastEventId;
    this.#retryMs = this.retryMs;
    this.#stream = this.isStream ? new SseReader(this.#maxBytes) : undefined;
    this.#whole = this.isStream ? undefined : new WholeReply(this.#maxBytes);
  }

  chunk(bytes: Uint8Array): boolean {
    if (this.#stream === undefined) return this.#whole?.chunk(bytes) ?? true;
    for (const { data } of this.#stream.read(bytes)) {
      if (data.length === 0) continue;
      this.events++;
      const incoming = parseMessage(data, { shape: messageShape });
      // Batches exist in 2025-03-26 only; they are harmless elsewhere.
      const messages = incoming.kind === "batch" ? incoming.items : [incoming];
      for (const message of messages) this.#receive(message);
      if (this.answer !== undefined) return true;
    }
    return false;
  }

  #receive(message: Exclude<Incoming, Batch>): void {
    if (message.kind !== "result" && message.kind !== "error") this.#take(message);
    else if (message.id === this.#id && this.#id !== undefined) this.answer = message;
  }

  /** Another response is to come. */
  rewind(): void {
    this.status = 0;
    this.isStream = false;
  }

  /** The id to resume after; kept when a resumed stream breaks before it brought one. */
  get lastEventId(): string | undefined {
    return this.#stream?.lastEventId ?? this.#lastEventId;
  }

  get retryMs(): number | undefined {
    return this.#stream?.retryMs ?? this.#retryMs;
  }

  /** The body as a message. */
  parse(): Incoming {
    const pieced = this.#whole?.pieced;
    return pieced === undefined
      ? parseMessage(this.body, { shape: messageShape })
      : parsePieced(pieced, { shape: messageShape });
  }

  get body(): Uint8Array {
    return this.#whole?.body ?? nothing;
  }
}
