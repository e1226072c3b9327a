import { Buffer } from "node:buffer";
import type { Readable } from "node:stream";
import type { Incoming } from "../jsonrpc/channel.ts";
import { LineSplitter, type Line } from "./lines.ts";

type Received = IteratorResult<readonly Incoming[], undefined>;

/** Someone who waits for the next messages. */
interface Waiting {
  readonly resolve: (received: Received) => void;
  readonly reject: (error: unknown) => void;
}

/** How many chunks are read ahead of whoever takes the messages; then the sender has to wait. */
const maxAhead = 4;

/**
 * Reads messages from a byte stream, those that came together in one array. Listens to the stream itself: its own iterator
 * costs several turns of the microtask queue for each chunk. Nothing that was handed out is held on to.
 */
export class LineReader implements AsyncIterableIterator<readonly Incoming[]> {
  readonly #readable: Readable;
  readonly #splitter: LineSplitter;
  readonly #parse: (line: Line) => Incoming;
  readonly #ahead: (readonly Incoming[])[] = [];
  #waiting: Waiting | undefined;
  #end: { readonly error: unknown } | undefined;

  constructor(readable: Readable, maxLineBytes: number, parse: (line: Line) => Incoming) {
    this.#readable = readable;
    this.#splitter = new LineSplitter(maxLineBytes);
    this.#parse = parse;
    readable.on("data", this.#onData);
    readable.on("end", this.#onEnd);
    readable.on("error", this.#onError);
    readable.on("close", this.#onEnd);
    // It may have ended before we came.
    if (readable.readableEnded || readable.destroyed) this.#onEnd();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** One at a time: whoever asks again before the answer came gets nothing. */
  next(): Promise<Received> {
    const value = this.#ahead.shift();
    if (value !== undefined) {
      if (this.#end === undefined && this.#readable.isPaused()) this.#readable.resume();
      return Promise.resolve({ done: false, value });
    }
    if (this.#end !== undefined) return this.#ended(this.#end.error);
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
    });
  }

  return(): Promise<Received> {
    this.#finish(undefined);
    this.#ahead.length = 0;
    return Promise.resolve({ done: true, value: undefined });
  }

  readonly #onData = (chunk: Uint8Array | string): void => {
    // A stream with an encoding gives strings.
    this.#give(this.#splitter.push(typeof chunk === "string" ? Buffer.from(chunk) : chunk));
  };

  readonly #onEnd = (): void => {
    if (this.#end !== undefined) return;
    this.#give(this.#splitter.flush());
    this.#finish(undefined);
  };

  readonly #onError = (error: unknown): void => {
    // A reset or a stream destroyed under us: the other side is gone, which is the end of input.
    if (isGone(error)) this.#onEnd();
    else this.#finish(error);
  };

  #give(lines: readonly Line[]): void {
    if (lines.length === 0) return;
    const messages = lines.map(this.#parse);
    const waiting = this.#waiting;
    if (waiting !== undefined) {
      this.#waiting = undefined;
      return waiting.resolve({ done: false, value: messages });
    }
    this.#ahead.push(messages);
    if (this.#ahead.length >= maxAhead) this.#readable.pause();
  }

  #finish(error: unknown): void {
    if (this.#end !== undefined) return;
    this.#end = { error };
    this.#readable.off("data", this.#onData);
    this.#readable.off("end", this.#onEnd);
    this.#readable.off("close", this.#onEnd);
    // What still goes wrong with a stream nobody reads is nobody's concern; without a listener it would end the process.
    this.#readable.off("error", this.#onError);
    this.#readable.on("error", () => {});
    const waiting = this.#waiting;
    this.#waiting = undefined;
    if (waiting !== undefined) void this.#ended(error).then(waiting.resolve, waiting.reject);
  }

  #ended(error: unknown): Promise<Received> {
    return error === undefined ? Promise.resolve({ done: true, value: undefined }) : Promise.reject(error);
  }
}

function isGone(error: unknown): boolean {
  const code = (error as { code?: unknown } | undefined)?.code;
  return code === "ERR_STREAM_PREMATURE_CLOSE" || code === "ECONNRESET" || code === "EPIPE" || code === "EIO";
}
