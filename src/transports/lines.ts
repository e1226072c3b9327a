import { minPiecedBytes, Pieced } from "../json/pieced.ts";
import { Pieces } from "./pieces.ts";

/** One line without its end, or the news that a line was too long and was left out. */
export type Line =
  | { readonly kind: "line"; readonly bytes: Uint8Array }
  /** A long one, in the pieces it came in. */
  | { readonly kind: "pieced"; readonly bytes: Pieced }
  | { readonly kind: "too_long"; readonly maxBytes: number };

const newline = 0x0a;
const carriageReturn = 0x0d;
const nothing = new Uint8Array(0);

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

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Whether what comes belongs to a line that is too long, and is thrown away. */
  get isSkipping(): boolean {
    return this.#isSkipping;
  }

  /** The lines that end in this chunk. */
  push(chunk: Uint8Array): readonly Line[] {
    const lines: Line[] = [];
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
  flush(): readonly Line[] {
    const lines: Line[] = [];
    this.#finish(nothing, lines);
    return lines;
  }

  #finish(last: Uint8Array, lines: Line[]): void {
    const isSkipped = this.#isSkipping;
    const partial = this.#partial;
    if (partial.length > 0) {
      partial.append(last);
      this.#forget();
    }
    this.#isSkipping = false;
    if (isSkipped) return;
    if (partial.length >= minPiecedBytes) this.#finishPieced(new Pieced(partial.all), lines);
    else this.#finishWhole(partial.length === 0 ? last : partial.join(), lines);
  }

  #finishWhole(bytes: Uint8Array, lines: Line[]): void {
    const line = endsWithReturn(bytes) ? bytes.subarray(0, -1) : bytes;
    if (line.length > this.#maxBytes) lines.push({ kind: "too_long", maxBytes: this.#maxBytes });
    else if (!isBlank(line)) lines.push({ kind: "line", bytes: line });
  }

  #finishPieced(bytes: Pieced, lines: Line[]): void {
    const end = bytes.length - (bytes.at(bytes.length - 1) === carriageReturn ? 1 : 0);
    // A long line that begins with space may be nothing but space.
    if (end > this.#maxBytes || isSpace(bytes.at(0))) return this.#finishWhole(bytes.join(), lines);
    lines.push({ kind: "pieced", bytes: end === bytes.length ? bytes : new Pieced(bytes.cut(0, end)) });
  }

  #keep(piece: Uint8Array, lines: Line[]): void {
    if (this.#isSkipping) return;
    // A carriage return that belongs to the line's end is not counted.
    const length = this.#partial.length + piece.length - (endsWithReturn(piece) ? 1 : 0);
    if (length > this.#maxBytes) {
      this.#isSkipping = true;
      this.#forget();
      lines.push({ kind: "too_long", maxBytes: this.#maxBytes });
    } else {
      this.#partial.append(piece);
    }
  }

  #forget(): void {
    this.#partial = new Pieces();
  }
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
