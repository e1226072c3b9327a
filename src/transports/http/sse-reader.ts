import { createParser, type EventSourceParser } from "eventsource-parser";
import { RpcError } from "../../errors/rpc-error.ts";

/** One event of a stream. */
export interface SseEvent {
  readonly event?: string | undefined;
  readonly id?: string | undefined;
  readonly data: string;
}

/** Reads an event stream piece by piece. Comments and fields nobody knows are left out. */
export class SseReader {
  /** The id most recently sent, on an event with data or without. */
  lastEventId: string | undefined;
  /** The wait the server asked for most recently. */
  retryMs: number | undefined;
  readonly #decoder = new TextDecoder();
  readonly #parser: EventSourceParser;
  #ready: SseEvent[] = [];

  constructor(maxEventBytes: number) {
    this.#parser = createParser({
      maxBufferSize: maxEventBytes,
      onEvent: (event) => {
        this.lastEventId = event.id ?? this.lastEventId;
        this.#ready.push(event);
      },
      onRetry: (ms) => {
        this.retryMs = ms;
      },
      onError: ({ type }) => {
        if (type !== "max-buffer-size-exceeded") return;
        const text = `The server sent an event of more than ${maxEventBytes} bytes`;
        throw new RpcError("rpc.internal", text);
      },
    });
  }

  /** The events that are complete with this piece. Throws an `RpcError` for one over the limit. */
  read(bytes: Uint8Array): readonly SseEvent[] {
    this.#parser.feed(this.#decoder.decode(bytes, { stream: true }));
    const events = this.#ready;
    this.#ready = [];
    return events;
  }
}
