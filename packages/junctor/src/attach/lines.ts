import { Buffer } from "node:buffer";

/** A whole line with its end, or a piece of a line that is too long to be held. */
interface Cut {
  readonly bytes: Buffer;
  readonly isWhole: boolean;
}

/** Lines up to this length are held until they are whole; the gateway refuses longer ones of a client anyway. */
export const maxHeldBytes: number = 16 * 1024 * 1024 + 1024;

/**
 * Cuts a stream into lines. A line is emitted when it is whole, so that a stream that breaks leaves no half line behind. A line over the
 * limit is emitted in pieces, as they come.
 */
export class LineCutter {
  #parts: Buffer[] = [];
  #held = 0;
  /** Whether a piece of a line that is too long was emitted, and its end has not come yet. */
  isInLongLine = false;

  /** The lines that end in this chunk. Lines that came together are slices of one buffer: nothing is copied. */
  push(chunk: Buffer): readonly Cut[] {
    const cuts: Cut[] = [];
    let start = 0;
    for (;;) {
      const end = chunk.indexOf(0x0a, start);
      if (end === -1) break;
      cuts.push(this.#finish(chunk.subarray(start, end + 1)));
      start = end + 1;
    }
    if (start < chunk.length) this.#keep(chunk.subarray(start), cuts);
    return cuts;
  }

  /** What is left when the stream ended without a line end. */
  flush(): Buffer | undefined {
    if (this.#held === 0) return undefined;
    const rest = Buffer.concat(this.#parts);
    this.#forget();
    return rest;
  }

  #finish(last: Buffer): Cut {
    const bytes = this.#held === 0 ? last : Buffer.concat([...this.#parts, last]);
    this.#forget();
    const isWhole = !this.isInLongLine;
    this.isInLongLine = false;
    return { bytes, isWhole };
  }

  #keep(part: Buffer, cuts: Cut[]): void {
    this.#parts.push(part);
    this.#held += part.length;
    if (!this.isInLongLine && this.#held <= maxHeldBytes) return;
    cuts.push({ bytes: Buffer.concat(this.#parts), isWhole: false });
    this.#forget();
    this.isInLongLine = true;
  }

  #forget(): void {
    this.#parts = [];
    this.#held = 0;
  }
}

/** What the front needs to know of one message: its id, its method, and whether it is an answer. */
export interface Scanned {
  /** The JSON text of the id; undefined when there is none. */
  readonly id: string | undefined;
  /** Where the id begins and ends, to write another in its place. */
  readonly idAt: readonly [start: number, end: number] | undefined;
  readonly method: string | undefined;
  /** Whether there is a `result` or an `error`. */
  readonly isAnswer: boolean;
  /** Whether the line holds several messages. */
  readonly isBatch: boolean;
}

const quote = 0x22;
const backslash = 0x5c;
const nothingScanned: Scanned = {
  id: undefined,
  idAt: undefined,
  method: undefined,
  isAnswer: false,
  isBatch: false,
};

/**
 * Finds the id and the method of a message without parsing the rest. It ends as soon as both, or an id and the start of a
 * result, are known. It finds nothing in a line that is not an object: the gateway reports what is wrong with it.
 */
export function scanMessage(line: Buffer): Scanned {
  let at = skipSpace(line, 0);
  if (line[at] === 0x5b) return { ...nothingScanned, isBatch: true };
  if (line[at] !== 0x7b) return nothingScanned;
  let id: string | undefined;
  let idAt: Scanned["idAt"];
  let method: string | undefined;
  let isAnswer = false;
  at = skipSpace(line, at + 1);
  while (line[at] === quote) {
    const keyEnd = skipString(line, at);
    const key = line.toString("latin1", at + 1, keyEnd - 1);
    at = skipSpace(line, keyEnd);
    if (line[at] !== 0x3a) break;
    const start = skipSpace(line, at + 1);
    if (key === "result" || key === "error") isAnswer = true;
    if (id !== undefined && (isAnswer || method !== undefined)) break;
    const end = skipValue(line, start);
    if (key === "id") {
      id = line.toString("utf8", start, end);
      idAt = [start, end];
    } else if (key === "method") method = line.toString("latin1", start + 1, end - 1);
    at = skipSpace(line, end);
    if (line[at] !== 0x2c) break;
    at = skipSpace(line, at + 1);
  }
  return { id, idAt, method, isAnswer, isBatch: false };
}

/** The same message with another id. */
export function withId(line: Buffer, [start, end]: readonly [number, number], id: string): Buffer {
  return Buffer.concat([line.subarray(0, start), Buffer.from(id), line.subarray(end)]);
}

function skipSpace(line: Buffer, from: number): number {
  let at = from;
  for (let byte = line[at]; byte === 0x20 || byte === 0x09 || byte === 0x0d; byte = line[at]) at++;
  return at;
}

/** Past the closing quote of the string that begins here; the end of the line when it has none. */
function skipString(line: Buffer, from: number): number {
  for (let at = from + 1; ;) {
    const end = line.indexOf(quote, at);
    if (end === -1) return line.length;
    let slashes = 0;
    while (line[end - 1 - slashes] === backslash) slashes++;
    if (slashes % 2 === 0) return end + 1;
    at = end + 1;
  }
}

function skipValue(line: Buffer, from: number): number {
  const first = line[from];
  if (first === quote) return skipString(line, from);
  if (first === 0x7b || first === 0x5b) return skipNested(line, from);
  let at = from;
  while (at < line.length && !isEnd(line[at])) at++;
  return at;
}

function skipNested(line: Buffer, from: number): number {
  let depth = 0;
  for (let at = from; at < line.length;) {
    const byte = line[at];
    if (byte === quote) {
      at = skipString(line, at);
      continue;
    }
    if (byte === 0x7b || byte === 0x5b) depth++;
    else if ((byte === 0x7d || byte === 0x5d) && --depth === 0) return at + 1;
    at++;
  }
  return line.length;
}

/** A comma, a bracket or white space ends a number or a word. */
function isEnd(byte: number | undefined): boolean {
  return (
    byte === 0x2c ||
    byte === 0x7d ||
    byte === 0x5d ||
    byte === 0x20 ||
    byte === 0x09 ||
    byte === 0x0d ||
    byte === 0x0a
  );
}
