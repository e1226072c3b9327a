import type { IncomingMessage, ServerResponse } from "node:http";
import type { HeaderLookup } from "../../mcp/era.ts";
import { createNodeSink, cutIfStalled, type SinkLimits } from "./node-sink.ts";
import type { Body, FrameSink, HttpHeaders, HttpRequest, Reply } from "./reply.ts";

/** A request of `node:http`. */
export class NodeRequest implements HttpRequest {
  readonly #incoming: IncomingMessage;
  readonly method: string;
  readonly path: string;
  readonly header: HeaderLookup;

  readonly #onRead: (() => void) | undefined;

  /** `onRead` is called before the body is read, for a client that waits for leave to send it. */
  constructor(incoming: IncomingMessage, onRead?: () => void) {
    const { url = "/", headers } = incoming;
    this.#incoming = incoming;
    this.#onRead = onRead;
    this.method = incoming.method ?? "GET";
    this.path = toPath(url);
    this.header = (name) => headers[name] as string | undefined;
  }

  get query(): URLSearchParams {
    const { url = "/" } = this.#incoming;
    return new URLSearchParams(url.includes("?") ? url.slice(url.indexOf("?") + 1) : "");
  }

  /** Node keeps the first of several `Host` headers and drops the others silently; somebody else may keep the last. */
  get hostCount(): number {
    const { rawHeaders } = this.#incoming;
    let count = 0;
    for (let index = 0; index < rawHeaders.length; index += 2) {
      const name = rawHeaders[index];
      if (name?.length === 4 && name.toLowerCase() === "host") count++;
    }
    return count;
  }

  get localPort(): number | undefined {
    return this.#incoming.socket.localPort;
  }

  readBody(maxBytes: number): Promise<Body> {
    if (Number(this.#incoming.headers["content-length"] ?? 0) <= maxBytes) this.#onRead?.();
    return new Promise((resolve) => new BodyReader(this.#incoming, maxBytes, resolve));
  }
}

/** A proxy names the whole URL (RFC 9112 §3.2.2); everybody else only the path. */
function toPath(url: string): string {
  const target = url.startsWith("/") || !URL.canParse(url) ? url : new URL(url).pathname;
  const queryAt = target.indexOf("?");
  return queryAt === -1 ? target : target.slice(0, queryAt);
}

/** Collects a body up to a limit. A class, because a function for every event of every request is many functions. */
class BodyReader {
  readonly #chunks: Uint8Array[] = [];
  #length = 0;
  #give: ((body: Body) => void) | undefined;

  constructor(incoming: IncomingMessage, maxBytes: number, give: (body: Body) => void) {
    this.#give = give;
    if (incoming.destroyed) {
      // The client left while we checked who it is; nothing will be emitted any more.
      this.#finish("aborted");
      return;
    }
    if (Number(incoming.headers["content-length"]) > maxBytes) {
      this.#refuse(incoming);
      return;
    }
    incoming.on("data", (chunk: Uint8Array) => {
      this.#length += chunk.length;
      if (this.#length > maxBytes) this.#refuse(incoming);
      else this.#chunks.push(chunk);
    });
    incoming.on("end", () => this.#finish(this.#join()));
    incoming.on("close", () => this.#finish("aborted"));
  }

  #join(): Uint8Array {
    const [first] = this.#chunks;
    return this.#chunks.length === 1 && first !== undefined ? first : Buffer.concat(this.#chunks);
  }

  /** What is still on its way is read and dropped, so that our answer gets out. */
  #refuse(incoming: IncomingMessage): void {
    incoming.removeAllListeners("data");
    incoming.resume();
    this.#finish("too_large");
  }

  #finish(body: Body): void {
    this.#give?.(body);
    this.#give = undefined;
  }
}

/** The answer to a request of `node:http`. */
export class NodeReply implements Reply {
  readonly #response: ServerResponse;
  readonly #limits: SinkLimits;

  constructor(response: ServerResponse, limits: SinkLimits) {
    this.#response = response;
    this.#limits = limits;
  }

  send(status: number, headers: HttpHeaders, body?: string | Uint8Array): void {
    const response = this.#response;
    if (response.destroyed) return;
    // With its length known, an answer is not chunked, and leaves together with its headers.
    const length = body === undefined ? 0 : Buffer.byteLength(body);
    response.writeHead(status, { ...headers, "content-length": length });
    response.end(body);
    cutIfStalled(response, this.#limits);
  }

  stream(status: number, headers: HttpHeaders, onClosed: () => void): FrameSink {
    this.#response.once("close", onClosed);
    return createNodeSink(this.#response, status, headers, this.#limits);
  }

  onHangUp(callback: () => void): void {
    const response = this.#response;
    if (response.destroyed) return callback();
    response.once("close", () => {
      if (!response.writableFinished) callback();
    });
  }
}
