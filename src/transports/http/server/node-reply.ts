import type { IncomingMessage, ServerResponse } from "node:http";
import type { Awaitable } from "../../../async/awaitable.ts";
import type { HeaderLookup } from "../../../mcp/era.ts";
import { createNodeSink, cutIfStalled, type SinkLimits } from "./node-sink.ts";
import type { Body, FrameSink, HttpHeaders, HttpRequest, Reply, ReplyBody } from "./reply.ts";

/** A request of `node:http`. */
export class NodeRequest implements HttpRequest {
  readonly #incoming: IncomingMessage;
  readonly method: string;
  readonly path: string;
  readonly header: HeaderLookup;

  readonly #run: (work: () => Awaitable<void>) => void;
  readonly #onRead: (() => void) | undefined;

  /**
   * `run` does what is done with the body, and answers for it. `onRead` is called before the body is read, for a client
   * that waits for leave to send it.
   */
  constructor(
    incoming: IncomingMessage,
    run: (work: () => Awaitable<void>) => void,
    onRead: (() => void) | undefined,
  ) {
    const { url = "/", headers } = incoming;
    this.#incoming = incoming;
    this.#run = run;
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

  /** The body is handed over within the event that ends it: nothing is promised, and nothing is put off. */
  readBody(maxBytes: number, take: (body: Body) => Awaitable<void>): void {
    if (Number(this.#incoming.headers["content-length"] ?? 0) <= maxBytes) this.#onRead?.();
    collectBody(this.#incoming, maxBytes, (body) => this.#run(() => take(body)));
  }
}

/** A proxy names the whole URL (RFC 9112 §3.2.2); everybody else only the path. */
function toPath(url: string): string {
  const target = url.startsWith("/") || !URL.canParse(url) ? url : new URL(url).pathname;
  const queryAt = target.indexOf("?");
  return queryAt === -1 ? target : target.slice(0, queryAt);
}

/** Collects a body up to a limit, and gives it, or why there is none, once. */
function collectBody(incoming: IncomingMessage, maxBytes: number, give: (body: Body) => void): void {
  const chunks: Uint8Array[] = [];
  let length = 0;
  let isGiven = false;
  const finish = (body: Body): void => {
    if (isGiven) return;
    isGiven = true;
    give(body);
  };
  /** What is still on its way is read and dropped, so that our answer gets out. */
  const refuse = (): void => {
    incoming.removeAllListeners("data");
    incoming.resume();
    finish("too_large");
  };
  if (Number(incoming.headers["content-length"]) > maxBytes) return refuse();
  incoming.on("data", (chunk: Uint8Array) => {
    length += chunk.length;
    if (length > maxBytes) refuse();
    else chunks.push(chunk);
  });
  incoming.on("end", () =>
    finish(chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks)),
  );
  incoming.on("close", () => finish("aborted"));
}

/**
 * Ends an answer with its only piece of text. `end(text)` would hold it back for an empty piece that Node writes after it,
 * and a write of two pieces costs 1.3 µs more than one of a string; see docs/performance.md.
 */
function endWith(response: ServerResponse, text: string): void {
  const { socket } = response;
  if (socket === null || text === "") return void response.end(text);
  socket.cork();
  response.write(text);
  socket.uncork();
  response.end();
}

/** The answer to a request of `node:http`. */
export class NodeReply implements Reply {
  readonly #response: ServerResponse;
  readonly #limits: SinkLimits;

  constructor(response: ServerResponse, limits: SinkLimits) {
    this.#response = response;
    this.#limits = limits;
  }

  send(status: number, headers: HttpHeaders, body: ReplyBody = ""): void {
    const response = this.#response;
    if (response.destroyed) return;
    // With its length known, an answer is not chunked, and leaves together with its headers.
    const length =
      typeof body === "string" ? Buffer.byteLength(body) : body.reduce((sum, piece) => sum + piece.length, 0);
    const fields: (string | number)[] = ["content-length", length];
    for (const name in headers) fields.push(name, headers[name] ?? "");
    response.writeHead(status, fields as string[]);
    if (typeof body === "string") endWith(response, body);
    else {
      for (const piece of body.slice(0, -1)) response.write(piece);
      response.end(body.at(-1));
    }
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
