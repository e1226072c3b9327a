import { Buffer } from "node:buffer";
import type { Readable } from "node:stream";
import { type Clock, LeakyBucket } from "../async/index.ts";
import { ClosedError } from "../errors/index.ts";
import { Pieced, minPiecedBytes } from "../json/index.ts";
import { maxHeadBytes, maxTailBytes, type Incoming } from "../rpc/index.ts";

/** The result of `next` of a reader of messages. */
export type Received = IteratorResult<readonly Incoming[], undefined>;

/** A call of `next` that waits for messages. */
interface WaitingReader {
  readonly resolve: (received: Received) => void;
  readonly reject: (error: unknown) => void;
}

/** The lines of one chunk, and how many of them were read as messages. */
interface Chunk {
  readonly lines: readonly InputLine[];
  read: number;
  /** Whether the input ended in the middle of its last line. */
  readonly isCut: boolean;
}

/**
 * Most messages parsed at once. Readers take a flood a few messages at a time, so
 * parsing more would be too early.
 */
const maxTogether = 16;

/**
 * For input that ended within a line: the calls underway fail because the input ended, not
 * because an answer was cut short.
 */
function withoutAnswer(incoming: Incoming): Incoming {
  if (incoming.kind !== "invalid") return incoming;
  const { answer: _, ...rest } = incoming;
  return rest;
}

/** How many chunks are read before their messages are taken; then the sender has to wait. */
const maxAhead = 4;

/** A line without end is thrown away, but not as fast as it can be written: that would take all of our time. */
const skipping = { burstBytes: 128 * 1024, bytesPerSecond: 8 * 1024 * 1024 };

interface LineReaderOptions {
  readonly maxLineBytes: number;
  /** How much of a line over the limit is thrown away before the input counts as ended. */
  readonly maxSkippedBytes: number;
  readonly parse: (line: InputLine) => Incoming;
  readonly clock: Clock;
}

/**
 * Reads messages from a byte stream; messages that came together come in one array. Listens to the stream
 * itself: its own iterator costs several turns of the microtask queue for each chunk. It keeps no reference
 * to messages that it gave out.
 */
export class LineReader implements AsyncIterableIterator<readonly Incoming[]> {
  readonly #readable: Readable;
  readonly #splitter: LineSplitter;
  readonly #pacer: Pacer;
  readonly #parse: LineReaderOptions["parse"];
  readonly #maxSkippedBytes: number;
  readonly #ahead: Chunk[] = [];
  #waiting: WaitingReader | undefined;
  #end: { readonly error: unknown } | undefined;
  #skippedBytes = 0;

  constructor(readable: Readable, { maxLineBytes, maxSkippedBytes, parse, clock }: LineReaderOptions) {
    this.#readable = readable;
    this.#splitter = new LineSplitter(maxLineBytes);
    this.#parse = parse;
    this.#maxSkippedBytes = maxSkippedBytes;
    this.#pacer = new Pacer({
      ...skipping,
      clock,
      pause: () => readable.pause(),
      resume: () => this.#resume(),
    });
    readable.on("data", this.#onData);
    readable.on("end", this.#onEnd);
    readable.on("error", this.#onError);
    readable.on("close", this.#onEnd);
    // The stream may have ended already.
    if (readable.readableEnded || readable.destroyed) this.#onEnd();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** One at a time: a second `next` before the first resolved takes its place. */
  next(): Promise<Received> {
    const value = this.#take();
    if (value !== undefined) {
      this.#resume();
      return Promise.resolve({ done: false, value });
    }
    if (this.#end !== undefined) return ended(this.#end.error);
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
    });
  }

  return(): Promise<Received> {
    this.#finish(undefined);
    this.#ahead.length = 0;
    return ended(undefined);
  }

  readonly #onData = (chunk: Uint8Array | string): void => {
    // A stream with an encoding gives strings.
    const bytes = typeof chunk === "string" ? Buffer.from(chunk) : chunk;
    const lines = this.#splitter.push(bytes);
    const { isSkipping } = this.#splitter;
    this.#skippedBytes = isSkipping ? this.#skippedBytes + bytes.length : 0;
    if (isSkipping) this.#pacer.charge(bytes.length);
    this.#enqueue(lines);
    if (this.#skippedBytes > this.#maxSkippedBytes)
      this.#finish(new ClosedError("outcome_unknown", "the other side sent a line without end"));
  };

  readonly #onEnd = (): void => {
    if (this.#end !== undefined) return;
    this.#enqueue(this.#splitter.flush(), true);
    this.#finish(undefined);
  };

  readonly #onError = (error: unknown): void => {
    // A reset or a stream destroyed under us: the other side is gone, which is the end of input.
    if (isGone(error)) this.#onEnd();
    else this.#finish(error);
  };

  /** The next messages that came together, read only now: a chunk may hold thirty thousand lines that are not messages. */
  #take(): readonly Incoming[] | undefined {
    const chunk = this.#ahead[0];
    if (chunk === undefined) return undefined;
    const { lines, read, isCut } = chunk;
    chunk.read += maxTogether;
    if (chunk.read >= lines.length) this.#ahead.shift();
    const isAll = read === 0 && lines.length <= maxTogether;
    const messages = (isAll ? lines : lines.slice(read, read + maxTogether)).map(this.#parse);
    return isCut ? messages.map(withoutAnswer) : messages;
  }

  #enqueue(lines: readonly InputLine[], isCut = false): void {
    if (lines.length === 0) return;
    this.#ahead.push({ lines, read: 0, isCut });
    const reader = this.#waiting;
    if (reader !== undefined) {
      this.#waiting = undefined;
      reader.resolve({ done: false, value: this.#take() ?? [] });
    }
    if (this.#ahead.length >= maxAhead) this.#readable.pause();
  }

  #resume(): void {
    const isWanted = this.#end === undefined && this.#ahead.length < maxAhead && !this.#pacer.isPausing;
    if (isWanted && this.#readable.isPaused()) this.#readable.resume();
  }

  #finish(error: unknown): void {
    if (this.#end !== undefined) return;
    this.#end = { error };
    this.#pacer.free();
    const readable = this.#readable;
    readable.off("data", this.#onData);
    readable.off("end", this.#onEnd);
    readable.off("close", this.#onEnd);
    // Later errors of the stream do not matter, but without a listener they would end the process.
    readable.off("error", this.#onError);
    readable.on("error", () => {});
    const reader = this.#waiting;
    this.#waiting = undefined;
    if (reader !== undefined) void ended(error).then(reader.resolve, reader.reject);
  }
}

function ended(error: unknown): Promise<Received> {
  return error === undefined ? Promise.resolve({ done: true, value: undefined }) : Promise.reject(error);
}

function isGone(error: unknown): boolean {
  const code = (error as { code?: unknown } | undefined)?.code;
  return code === "ERR_STREAM_PREMATURE_CLOSE" || code === "ECONNRESET" || code === "EPIPE" || code === "EIO";
}

/** One line without its end, or a note that a line was too long and was left out. */
export type InputLine =
  | { readonly kind: "line"; readonly bytes: Uint8Array }
  /** A long one, in the pieces it came in. */
  | { readonly kind: "pieced"; readonly bytes: Pieced }
  | { readonly kind: "too_long"; readonly maxBytes: number; readonly head: Uint8Array }
  /** The end of a line that was too long. */
  | { readonly kind: "skipped"; readonly maxBytes: number; readonly tail: Uint8Array };

const newline = 0x0a;
const carriageReturn = 0x0d;
const noBytes = new Uint8Array(0);

/**
 * Cuts a stream of bytes into lines. Works on bytes, so a character may be split anywhere between two chunks, and only
 * `\n` and `\r\n` end a line (U+2028 does not). Blank lines are left out. A line over the limit is reported once, as
 * soon as that is known, and skipped to its end; the lines after it are not affected.
 */
export class LineSplitter {
  readonly #maxBytes: number;
  /** The part of a line whose end has not come yet. */
  #partial = new Pieces();
  #isSkipping = false;
  /** The last bytes of a line that is skipped. */
  #tail: Uint8Array = noBytes;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Whether the next bytes belong to a line that is too long. They are thrown away. */
  get isSkipping(): boolean {
    return this.#isSkipping;
  }

  /** The lines that end in this chunk. */
  push(chunk: Uint8Array): readonly InputLine[] {
    const lines: InputLine[] = [];
    let start = 0;
    for (;;) {
      const end = chunk.indexOf(newline, start);
      if (end === -1) break;
      this.#finish(chunk.subarray(start, end), lines);
      start = end + 1;
    }
    if (start < chunk.length) this.#keep(chunk.subarray(start), lines);
    return lines;
  }

  /** The last line, if the stream ended without a line end. */
  flush(): readonly InputLine[] {
    const lines: InputLine[] = [];
    this.#finish(noBytes, lines);
    return lines;
  }

  #finish(last: Uint8Array, lines: InputLine[]): void {
    const isSkipped = this.#isSkipping;
    const partial = this.#partial;
    if (partial.length > 0) {
      partial.append(last);
      this.#forget();
    }
    this.#isSkipping = false;
    if (isSkipped) return this.#finishSkipped(last, lines);
    if (partial.length >= minPiecedBytes) this.#finishPieced(new Pieced(partial.all), lines);
    else this.#finishWhole(partial.length === 0 ? last : partial.join(), lines);
  }

  #finishSkipped(last: Uint8Array, lines: InputLine[]): void {
    lines.push({ kind: "skipped", maxBytes: this.#maxBytes, tail: endOf(this.#tail, last) });
    this.#tail = noBytes;
  }

  #finishWhole(bytes: Uint8Array, lines: InputLine[]): void {
    const line = endsWithReturn(bytes) ? bytes.subarray(0, -1) : bytes;
    if (line.length > this.#maxBytes) lines.push({ kind: "too_long", maxBytes: this.#maxBytes, head: line });
    else if (!isBlank(line)) lines.push({ kind: "line", bytes: line });
  }

  #finishPieced(bytes: Pieced, lines: InputLine[]): void {
    const end = bytes.length - (bytes.at(bytes.length - 1) === carriageReturn ? 1 : 0);
    // A long line that begins with space may be nothing but space.
    if (end > this.#maxBytes || isSpace(bytes.at(0))) return this.#finishWhole(bytes.join(), lines);
    lines.push({ kind: "pieced", bytes: end === bytes.length ? bytes : new Pieced(bytes.cut(0, end)) });
  }

  #keep(piece: Uint8Array, lines: InputLine[]): void {
    if (this.#isSkipping) {
      this.#tail = endOf(this.#tail, piece);
      return;
    }
    // A carriage return that belongs to the line's end is not counted.
    const length = this.#partial.length + piece.length - (endsWithReturn(piece) ? 1 : 0);
    if (length > this.#maxBytes) {
      this.#isSkipping = true;
      this.#tail = endOf(noBytes, piece);
      // A line may begin with a few bytes at the end of a chunk, so its first piece may be too short.
      const head = Buffer.concat([...this.#partial.all, piece], Math.min(length, maxHeadBytes));
      this.#forget();
      lines.push({ kind: "too_long", maxBytes: this.#maxBytes, head });
    } else {
      this.#partial.append(piece);
    }
  }

  #forget(): void {
    this.#partial = new Pieces();
  }
}

/** The last bytes of two pieces. */
function endOf(before: Uint8Array, piece: Uint8Array): Uint8Array {
  return Buffer.concat([before, piece.subarray(-maxTailBytes)]).subarray(-maxTailBytes);
}

function endsWithReturn(bytes: Uint8Array): boolean {
  return bytes[bytes.length - 1] === carriageReturn;
}

function isBlank(line: Uint8Array): boolean {
  for (const byte of line) if (!isSpace(byte)) return false;
  return true;
}

function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x09 || byte === carriageReturn;
}

/** Pieces smaller than this are gathered in blocks. */
const minPieceBytes = 16 * 1024;

const maxBlockBytes = 64 * 1024;

/** Collects bytes that arrive piece by piece and are needed as one. */
export class Pieces {
  length = 0;
  readonly #pieces: Uint8Array[] = [];
  /** Where small pieces go, so that pieces as small as a byte do not add up to many objects. */
  #block: Uint8Array | undefined;
  #used = 0;

  append(piece: Uint8Array): void {
    if (piece.length === 0) return;
    this.length += piece.length;
    if (this.#block === undefined || piece.length > this.#block.length - this.#used) {
      this.#closeBlock();
      // A small part of a chunk would keep all of it in memory.
      if (piece.length >= minPieceBytes && piece.length >= piece.buffer.byteLength / 2) {
        this.#pieces.push(piece);
        return;
      }
      const room = Math.min(2 * this.length, maxBlockBytes);
      this.#block = Buffer.allocUnsafeSlow(Math.max(room, piece.length));
    }
    this.#block.set(piece, this.#used);
    this.#used += piece.length;
  }

  /** What came so far, in a few pieces. */
  get all(): readonly Uint8Array[] {
    this.#closeBlock();
    return this.#pieces;
  }

  join(): Uint8Array {
    this.#closeBlock();
    const [only] = this.#pieces;
    return this.#pieces.length === 1 && only !== undefined ? only : Buffer.concat(this.#pieces, this.length);
  }

  #closeBlock(): void {
    if (this.#block !== undefined) this.#pieces.push(this.#block.subarray(0, this.#used));
    this.#block = undefined;
    this.#used = 0;
  }
}

interface PacerOptions {
  /** How much may come at once. */
  readonly burstBytes: number;
  readonly bytesPerSecond: number;
  readonly clock: Clock;
  readonly pause: () => void;
  readonly resume: () => void;
}

/**
 * Lets a stream through at any speed up to an amount, and beyond that no faster than a rate: a
 * sender that floods has to wait.
 */
export class Pacer {
  readonly #options: PacerOptions;
  readonly #bucket: LeakyBucket;
  #stopTimer: (() => void) | undefined;
  #isFree = false;

  constructor(options: PacerOptions) {
    const { burstBytes, bytesPerSecond, clock } = options;
    this.#options = options;
    this.#bucket = new LeakyBucket(clock, (burstBytes / bytesPerSecond) * 1000);
  }

  /** Whether the stream has to wait. */
  get isPausing(): boolean {
    return this.#stopTimer !== undefined;
  }

  /** This many bytes arrived. */
  charge(bytes: number): void {
    const { bytesPerSecond, clock, pause } = this.#options;
    const waitMs = this.#bucket.charge((bytes / bytesPerSecond) * 1000);
    if (waitMs === 0 || this.#isFree || this.isPausing) return;
    pause();
    this.#stopTimer = clock.timer(waitMs, () => this.#resumeNow());
  }

  /** Lets everything through from now on: the sender has gone, and the rest is finite. */
  free(): void {
    this.#isFree = true;
    if (this.isPausing) this.#resumeNow();
  }

  #resumeNow(): void {
    this.#stopTimer?.();
    this.#stopTimer = undefined;
    this.#options.resume();
  }
}

/** The end of a stream of text: as much as fits, whatever came before. */
export class TextTail {
  readonly #maxBytes: number;
  #bytes: Buffer = Buffer.alloc(0);

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  push(chunk: Uint8Array): void {
    const joined = Buffer.concat([this.#bytes, chunk]);
    this.#bytes = joined.length > this.#maxBytes ? Buffer.from(joined.subarray(-this.#maxBytes)) : joined;
  }

  get text(): string {
    return this.#bytes.toString("utf8");
  }
}
