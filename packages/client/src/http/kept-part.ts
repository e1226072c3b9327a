import { Buffer } from "node:buffer";

/**
 * How much of a response is kept here while the sink wants nothing, before its socket is paused. undici copies all that waits on a socket
 * whenever it is resumed, and has the socket read 64 KiB more. So a server that sends each event as a chunk of its own would
 * make it hold more and more, were the socket paused and resumed for each.
 */
const maxKeptBytes = 128 * 1024;

/** What a chunk costs besides its bytes. */
const chunkBytes = 64;

export const noBytes: Uint8Array = new Uint8Array(0);

/** The part of a response that came while its sink wanted nothing. */
export class KeptPart {
  #chunks: Uint8Array[] = [];
  #size = 0;
  /** Ends the response, if its end came too. */
  end: (() => void) | undefined;

  /** True when the socket is to be paused. */
  add(bytes: Uint8Array): boolean {
    this.#chunks.push(bytes);
    this.#size += bytes.length + chunkBytes;
    return this.#size >= maxKeptBytes;
  }

  take(): Uint8Array {
    const chunks = this.#chunks;
    this.#chunks = [];
    this.#size = 0;
    return chunks.length === 0 ? noBytes : Buffer.concat(chunks);
  }
}
