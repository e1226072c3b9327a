import { Buffer } from "node:buffer";
import type { Readable, Writable } from "node:stream";
import { type Clock, systemClock, waitFor, type Deferred, createDeferred } from "../async/index.ts";
import { ClosedError, RpcError } from "../errors/index.ts";
import { toOneLine, type RawJson } from "../json/index.ts";
import { messageShape } from "../mcp/index.ts";
import {
  findBrokenAnswer,
  findIdAtEnd,
  type Channel,
  type Incoming,
  type Invalid,
  type Message,
  encodeMessage,
  parseMessage,
  parsePieced,
} from "../rpc/index.ts";
import { type InputLine, LineReader } from "./line-reader.ts";

export interface LineLimits {
  /** Longest line accepted, in bytes without its end; 16 MiB by default. */
  readonly maxLineBytes?: number;
  /** Deepest nesting of JSON accepted. */
  readonly maxDepth?: number;
}

export interface StreamChannelOptions extends LineLimits {
  /** Called with the bytes of each line that is not a message. */
  readonly onStray?: ((line: Uint8Array) => void) | undefined;
  /** How long a reader may take for the last messages when the channel is disposed. After that they are lost. */
  readonly closeMs?: number;
  readonly clock?: Clock;
}

interface ChannelOptions extends StreamChannelOptions {
  /** How much of a line that is too long is skipped before the channel ends; without a limit by default. */
  readonly maxSkippedBytes?: number;
}

export const defaultMaxLineBytes: number = 16 * 1024 * 1024;

/** A channel whose two directions can be ended one by one. */
interface StreamChannel extends Channel {
  /** Waits until the reader has taken all messages, then ends that direction. */
  endOutput(): Promise<void>;
}

/** A channel over two byte streams, one JSON message a line. Disposing it ends both. */
export function createStreamChannel(
  readable: Readable,
  writable: Writable,
  options: ChannelOptions = {},
): StreamChannel {
  const { closeMs = 1000, clock = systemClock } = options;
  const writer = new LineWriter(writable);
  return {
    send: (message) => writer.write(encodeMessage(message), isAnswer(message)),
    endOutput: () => writer.end(),
    [Symbol.asyncIterator]: () => receive(readable, options),
    [Symbol.asyncDispose]: async () => {
      await waitFor(writer.end(), { ms: closeMs, clock });
      writable.destroy();
      readable.destroy();
    },
  };
}

function receive(readable: Readable, limits: ChannelOptions): AsyncIterableIterator<readonly Incoming[]> {
  const { maxLineBytes = defaultMaxLineBytes, maxSkippedBytes = Infinity } = limits;
  const { maxDepth, clock = systemClock, onStray } = limits;
  const options = { shape: messageShape, ...(maxDepth === undefined ? {} : { maxDepth }) };
  const parse = (line: InputLine): Incoming => {
    const incoming = toIncoming(line, options);
    if (incoming.kind === "invalid" && line.kind === "line") onStray?.(line.bytes);
    return incoming;
  };
  return new LineReader(readable, { maxLineBytes, maxSkippedBytes, parse, clock });
}

function toIncoming(line: InputLine, options: Parameters<typeof parseMessage>[1]): Incoming {
  switch (line.kind) {
    case "line":
      return parseMessage(line.bytes, options);
    case "pieced":
      return parsePieced(line.bytes, options);
    case "too_long":
      return { ...refuseTooLong(line.maxBytes), answer: findBrokenAnswer(line.head) };
    case "skipped":
      return { ...refuseTooLong(line.maxBytes), isAnswerable: false, answer: findIdAtEnd(line.tail) };
  }
}

/** The error that stands for a message that is too long to read. */
export function refuseTooLong(maxBytes: number): Invalid {
  const text = `The message is longer than ${maxBytes} bytes and was skipped`;
  return {
    kind: "invalid",
    id: undefined,
    error: new RpcError("rpc.invalid_request", text),
    isAnswerable: true,
  };
}

/**
 * Writes JSON as lines. Messages that are sent within one turn of the event loop leave in one write, because a system call costs
 * more than everything else about a small message. A reader that vanished (EPIPE) closes the writer and is not an error.
 */
class LineWriter {
  readonly #writable: Writable;
  #waiting: RawJson[] = [];
  #flushed: Deferred<void> | undefined;
  #drained: Deferred<void> | undefined;
  #closed: ClosedError | undefined;
  #ended: Promise<void> | undefined;

  constructor(writable: Writable) {
    this.#writable = writable;
    writable.on("error", (error) => this.#close(error));
    writable.on("close", () => this.#close(undefined));
    writable.on("drain", () => {
      this.#drained?.resolve();
      this.#drained = undefined;
    });
  }

  /**
   * Resolves when the stream has taken the line and has room for more. Rejects with a `ClosedError`,
   * also when too much is unread. Answers are taken even then: a peer starts no more requests than
   * it can hold the answers of.
   */
  write(json: RawJson, isAnswer: boolean): Promise<void> {
    if (this.#closed !== undefined) return Promise.reject(this.#closed);
    if (!isAnswer && this.#writable.writableLength > maxUnreadBytes)
      return Promise.reject(
        new ClosedError("not_sent", `the reader leaves more than ${maxUnreadBytes} bytes unread`),
      );
    this.#waiting.push(toOneLine(json));
    if (this.#flushed === undefined) {
      this.#flushed = createDeferred();
      setImmediate(() => this.#flush());
    }
    return this.#flushed.promise;
  }

  /** Waits until the reader has taken all lines, then ends the stream. */
  end(): Promise<void> {
    this.#ended ??= this.#end();
    return this.#ended;
  }

  async #end(): Promise<void> {
    if (this.#closed !== undefined) return;
    this.#flush();
    this.#closed = new ClosedError("not_sent", "the channel is closed");
    const ended = createDeferred<void>();
    this.#writable.once("close", ended.resolve);
    this.#writable.end(ended.resolve);
    await ended.promise;
  }

  #flush(): void {
    const flushed = this.#flushed;
    if (flushed === undefined) return;
    const lines = this.#waiting;
    this.#waiting = [];
    this.#flushed = undefined;
    // A stream that was destroyed before we got it takes nothing and emits no event.
    if (this.#writable.destroyed) this.#close(undefined);
    if (this.#closed !== undefined) return flushed.reject(this.#closed);
    let hasRoom = true;
    for (const chunk of toChunks(lines)) hasRoom = this.#writable.write(chunk);
    if (hasRoom) return flushed.resolve();
    this.#drained ??= createDeferred();
    this.#drained.promise.then(flushed.resolve, flushed.reject);
  }

  #close(cause: unknown): void {
    this.#closed ??= new ClosedError("not_sent", "the reader is gone", { cause });
    // Lines that wait for room were handed to the stream, and may have arrived.
    this.#drained?.reject(new ClosedError("outcome_unknown", "the reader is gone", { cause }));
    this.#drained = undefined;
  }
}

/** A batch holds answers: nothing else is sent in batches. */
function isAnswer(message: Message | readonly Message[]): boolean {
  return !("kind" in message) || message.kind === "result" || message.kind === "error";
}

/** A reader that stopped reading must not make us hold everything it was ever sent. */
const maxUnreadBytes = 64 * 1024 * 1024;

/** Beyond this length one more system call costs little, and a string longer than half a gigabyte cannot be made at all. */
const maxChunkLength = 256 * 1024;

/** Lines joined to chunks worth a write each. Text stays text: joining strings is free, encoding them once is cheap. */
function* toChunks(lines: readonly RawJson[]): Generator<string | Uint8Array> {
  let text = "";
  for (const line of lines) {
    const { written } = line;
    if (typeof written !== "string") {
      if (text !== "") yield text;
      text = "";
      if (written.length > 1) yield* [...written, lineEnd];
      else yield Buffer.concat([...written, lineEnd]);
      continue;
    }
    text += `${written}\n`;
    if (text.length < maxChunkLength) continue;
    yield text;
    text = "";
  }
  if (text !== "") yield text;
}

const lineEnd = Buffer.from("\n");
