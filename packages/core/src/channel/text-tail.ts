import { Buffer } from "node:buffer";

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
