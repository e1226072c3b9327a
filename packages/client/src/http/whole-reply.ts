import { Buffer } from "node:buffer";
import type { IncomingHttpHeaders } from "node:http";
import { RpcError } from "@junctor/core/errors";
import { Pieced, minPiecedBytes } from "@junctor/core/json";
import { messageShape } from "@junctor/core/mcp";
import { type Incoming, parseMessage, parsePieced } from "@junctor/core/rpc";
import type { ReplySink } from "./exchange.ts";

/** A response that was read to its end. */
export class WholeReply implements ReplySink {
  status = 0;
  headers: IncomingHttpHeaders = {};
  readonly #maxBytes: number;
  readonly #chunks: Uint8Array[] = [];
  #length = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  head(status: number, headers: IncomingHttpHeaders): void {
    this.status = status;
    this.headers = headers;
  }

  chunk(bytes: Uint8Array): boolean {
    this.#length += bytes.length;
    if (this.#length > this.#maxBytes)
      throw new RpcError("rpc.other", `The server answered with more than ${this.#maxBytes} bytes`);
    this.#chunks.push(bytes);
    return false;
  }

  /** The body as a message. A large one is parsed in the pieces it came in. */
  parse(): Incoming {
    const options = { shape: messageShape };
    return this.#length < minPiecedBytes
      ? parseMessage(this.body, options)
      : parsePieced(new Pieced(this.#chunks), options);
  }

  get body(): Uint8Array {
    const [only] = this.#chunks;
    return this.#chunks.length === 1 && only !== undefined ? only : Buffer.concat(this.#chunks);
  }
}
