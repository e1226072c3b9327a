import { Buffer } from "node:buffer";

/** Pieces smaller than this are gathered in blocks. */
const minPieceBytes = 16 * 1024;

const maxBlockBytes = 64 * 1024;

/** Bytes that come bit by bit and are wanted as one. */
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
