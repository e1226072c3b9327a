import { Buffer } from "node:buffer";

/** Bytes in several pieces, as they came. A large message is copied at most once. */
export class Pieced {
  readonly length: number;
  readonly #pieces: readonly Uint8Array[];
  #joined: Uint8Array | undefined;

  constructor(pieces: readonly Uint8Array[]) {
    this.#pieces = pieces;
    this.length = pieces.reduce((sum, { length }) => sum + length, 0);
  }

  /** The byte at an offset; undefined beyond the end. */
  at(offset: number): number | undefined {
    let start = offset;
    for (const piece of this.#pieces) {
      if (start < piece.length) return piece[start];
      start -= piece.length;
    }
    return undefined;
  }

  /** The bytes at [start, end), in as many pieces as they lie in. Nothing is copied. */
  cut(start: number, end: number): readonly Uint8Array[] {
    const parts: Uint8Array[] = [];
    let at = 0;
    for (const piece of this.#pieces) {
      const from = Math.max(0, start - at);
      const to = Math.min(piece.length, end - at);
      if (from < to) parts.push(from === 0 && to === piece.length ? piece : piece.subarray(from, to));
      at += piece.length;
    }
    return parts;
  }

  /** All of it in one piece, made once. */
  join(): Uint8Array {
    this.#joined ??= Buffer.concat(this.#pieces, this.length);
    return this.#joined;
  }

  copyTo(target: Uint8Array): void {
    let at = 0;
    for (const piece of this.#pieces) {
      target.set(piece, at);
      at += piece.length;
    }
  }
}

/** From this size on, bytes that came in pieces stay in pieces. */
export const minPiecedBytes: number = 128 * 1024;

/** Larger bytes are joined for good: the scratch memory for them would be held forever. */
export const maxScratchBytes: number = 4 * 1024 * 1024;

let scratch: Uint8Array = new Uint8Array(0);

/**
 * The bytes in one piece, valid until the next call: for a caller that reads them now and keeps nothing of
 * them. Not allocating them for each message halves the memory, and the garbage.
 */
export function inScratch(pieced: Pieced): Uint8Array {
  const { length } = pieced;
  if (length > maxScratchBytes) return pieced.join();
  if (scratch.length < length) scratch = Buffer.allocUnsafeSlow(2 ** Math.ceil(Math.log2(length)));
  pieced.copyTo(scratch);
  return scratch.subarray(0, length);
}
