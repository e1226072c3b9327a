import type { IncomingHttpHeaders } from "node:http";
import type { Batch, Incoming } from "../../../jsonrpc/channel.ts";
import type { RequestId, Response } from "../../../jsonrpc/message.ts";
import { parseMessage } from "../../../jsonrpc/parse.ts";
import { messageShape } from "../../../mcp/shape.ts";
import { mediaTypeOf, type ReplySink, WholeReply } from "./exchange.ts";
import { SseReader } from "./sse-reader.ts";

/** Takes what is no answer: notifications, a legacy server's requests, nonsense. */
export type TakeMessage = (message: Exclude<Incoming, Response | Batch>) => void;

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
  readonly #id: RequestId | undefined;
  readonly #take: TakeMessage;
  readonly #maxBytes: number;
  #stream: SseReader | undefined;

  /** Without an id nothing is an answer: that is a stream of announcements. */
  constructor(id: RequestId | undefined, maxBytes: number, take: TakeMessage) {
    this.#id = id;
    this.#take = take;
    this.#maxBytes = maxBytes;
    this.whole = new WholeReply(maxBytes);
  }

  head(status: number, headers: IncomingHttpHeaders): void {
    this.whole.head(status, headers);
    this.isStream = status === 200 && mediaTypeOf(headers) === "text/event-stream";
    // A stream that breaks before it brought an id is resumed after the id of the one before it.
    if (this.isStream) this.#stream = new SseReader(this.#maxBytes, this.#stream);
  }

  chunk(bytes: Uint8Array): boolean {
    if (!this.isStream || this.#stream === undefined) return this.whole.chunk(bytes);
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
    this.whole = new WholeReply(this.#maxBytes);
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
