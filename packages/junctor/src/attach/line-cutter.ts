import { Buffer } from "node:buffer";

/** A whole line with its end, or a piece of a line that is too long to be held. */
interface Cut {
  readonly bytes: Buffer;
  readonly isRemote: boolean;
}

/** Lines up to this length are held until they are whole; the gateway refuses longer ones of a client anyway. */
export const maxHeldBytes: number = 16 * 1024 * 1024 + 1024;

/**
 * Cuts a stream into lines. A line is given when it is whole, so that a stream that breaks leaves no half line behind; one over
 * the limit is given in pieces, as it comes.
 */
export class LineCutter {
  #parts: Buffer[] = [];
  #held = 0;
  /** Whether a part of a line that is too long was given, and its end has not come yet. */
  isInLongLine = false;

  /** The lines that end in this chunk. Lines that came together stay one buffer's slices: nothing is copied. */
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
    const isRemote = !this.isInLongLine;
    this.isInLongLine = false;
    return { bytes, isRemote };
  }

  #keep(part: Buffer, cuts: Cut[]): void {
    this.#parts.push(part);
    this.#held += part.length;
    if (!this.isInLongLine && this.#held <= maxHeldBytes) return;
    cuts.push({ bytes: Buffer.concat(this.#parts), isRemote: false });
    this.#forget();
    this.isInLongLine = true;
  }

  #forget(): void {
    this.#parts = [];
    this.#held = 0;
  }
}
