import { Buffer } from "node:buffer";
import type { IncomingHttpHeaders } from "node:http";
import type { Dispatcher } from "undici";
import { RpcError } from "../../../errors/rpc-error.ts";
import { minPiecedBytes, Pieced } from "../../../json/pieced.ts";
import { Exchange, type HttpRequest, type ReplySink } from "./exchange.ts";

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
      throw new RpcError("rpc.internal", `The server answered with more than ${this.#maxBytes} bytes`);
    this.#chunks.push(bytes);
    return false;
  }

  /** The body, if it is a large one, in the pieces it came in. */
  get pieced(): Pieced | undefined {
    return this.#length < minPiecedBytes ? undefined : new Pieced(this.#chunks);
  }

  get body(): Uint8Array {
    const [only] = this.#chunks;
    return this.#chunks.length === 1 && only !== undefined ? only : Buffer.concat(this.#chunks);
  }
}

/** Sends a request whose response is small, and reads it whole. */
export async function fetchWhole(dispatcher: Dispatcher, request: HttpRequest): Promise<WholeReply> {
  const reply = new WholeReply(64 * 1024);
  await new Exchange(dispatcher, request, reply).ended;
  return reply;
}

/** The media type of a response. */
export function mediaTypeOf(headers: IncomingHttpHeaders): string {
  const value = headers["content-type"] ?? "";
  const end = value.indexOf(";");
  return (end === -1 ? value : value.slice(0, end)).trim().toLowerCase();
}
