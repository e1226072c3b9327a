import { Buffer } from "node:buffer";
import type { Writable } from "node:stream";
import { createDeferred, type Deferred } from "../async/deferred.ts";
import { ClosedError } from "../errors/closed-error.ts";
import { toOneLine } from "../json/one-line.ts";
import type { RawJson } from "../json/raw.ts";

/**
 * Writes JSON as lines. What is sent within one turn of the event loop leaves in one write, because a system call costs
 * more than everything else about a small message. A reader that vanished (EPIPE) closes the writer and is no error.
 */
export class LineWriter {
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

  /** Resolves when the stream has taken the line and has room for more. Rejects with a `ClosedError`. */
  write(json: RawJson): Promise<void> {
    if (this.#closed !== undefined) return Promise.reject(this.#closed);
    if (this.#writable.writableLength > maxUnreadBytes)
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

  /** Lets what was written out, then ends the stream. Takes as long as the reader does. */
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
    // A stream that was destroyed before we had it takes nothing, and says nothing either.
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
    // What waits for room was handed to the stream, and may have arrived.
    this.#drained?.reject(new ClosedError("outcome_unknown", "the reader is gone", { cause }));
    this.#drained = undefined;
  }
}

/** A reader that stopped reading must not make us hold everything it was ever sent. */
const maxUnreadBytes = 64 * 1024 * 1024;

/** Beyond this a system call more is nothing, and a string longer than half a gigabyte cannot be made at all. */
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
