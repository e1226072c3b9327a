import type { IncomingMessage, ServerResponse } from "node:http";
import { createDeferred } from "@junctor/core/async";
import type { WrittenJson } from "@junctor/core/json";
import type { HeaderLookup } from "@junctor/core/mcp";
import type { ClientCertificate } from "./authenticate.ts";
import type { Body, FrameSink, HttpHeaders, HttpRequest, Reply, SinkLimits, UnreadAnswer } from "./reply.ts";
import { certificateOf } from "./tls.ts";

/** A request of `node:http`. */
export class NodeRequest implements HttpRequest {
  readonly #incoming: IncomingMessage;
  readonly method: string;
  readonly path: string;
  readonly header: HeaderLookup;

  constructor(incoming: IncomingMessage) {
    const { url = "/", headers } = incoming;
    this.#incoming = incoming;
    this.method = incoming.method ?? "GET";
    this.path = toPath(url);
    this.header = (name) => headers[name] as string | undefined;
  }

  get query(): URLSearchParams {
    const { url = "/" } = this.#incoming;
    return new URLSearchParams(url.includes("?") ? url.slice(url.indexOf("?") + 1) : "");
  }

  /** Node keeps the first of several `Host` headers and drops the others silently; a proxy before us may keep the last. */
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

  get remoteAddress(): string | undefined {
    return this.#incoming.socket.remoteAddress;
  }

  get certificate(): ClientCertificate | undefined {
    return certificateOf(this.#incoming.socket);
  }
}

/** A proxy sends the whole URL (RFC 9112 §3.2.2); other clients send the path only. */
function toPath(url: string): string {
  const target = url.startsWith("/") || !URL.canParse(url) ? url : new URL(url).pathname;
  const queryAt = target.indexOf("?");
  return queryAt === -1 ? target : target.slice(0, queryAt);
}

/** Reads a body up to a limit. Calls `give` once, within the event that ends the body, with the body or the reason why there is none. */
export function readNodeBody(incoming: IncomingMessage, maxBytes: number, give: (body: Body) => void): void {
  const chunks: Uint8Array[] = [];
  let length = 0;
  let isGiven = false;
  const finish = (body: Body): void => {
    if (isGiven) return;
    isGiven = true;
    give(body);
  };
  /** Reads and drops the rest of the body, so that the client reads our answer. */
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
 * Ends an answer with its only piece of text. `end(text)` would join it with an empty piece that Node writes after it, and a
 * write of two pieces costs 1.3 µs more than that of one string; see docs/evidence/performance.md.
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
  caller: string | undefined;

  constructor(response: ServerResponse, limits: SinkLimits) {
    this.#response = response;
    this.#limits = limits;
  }

  refused(status: number, code: string): void {
    this.#limits.onRefused?.(status, code, this.caller);
  }

  send(status: number, headers: HttpHeaders, body: WrittenJson = ""): void {
    const response = this.#response;
    if (response.destroyed) return;
    // With its length known, an answer is not chunked, and is sent together with its headers.
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
    cutIfStalled(response, this.#limits, this.caller);
  }

  stream(status: number, headers: HttpHeaders, onClosed: () => void): FrameSink {
    this.#response.once("close", onClosed);
    const response = this.#response;
    response.writeHead(status, headers as Record<string, string>);
    response.flushHeaders();
    return createNodeSink(response, this.#limits, this.caller);
  }

  onHangUp(callback: () => void): void {
    const response = this.#response;
    if (response.destroyed) return callback();
    response.once("close", () => {
      if (!response.writableFinished) callback();
    });
  }
}

/** An answer that comes in pieces; its headers are already sent. */
export function createNodeSink(response: ServerResponse, limits: SinkLimits, caller?: string): FrameSink {
  const isOpen = (): boolean => !response.destroyed && !response.writableEnded;
  const cut = (reason: string): void => {
    if (!isOpen()) return;
    limits.onCut(reason);
    response.destroy();
  };
  let unread: UnreadAnswer | undefined;
  let draining: Drain | undefined;
  const onWritten = (): void => {
    if (response.writableLength === 0) draining?.end();
  };
  return {
    get isOpen() {
      return isOpen();
    },
    write: (text) => {
      if (!isOpen()) return undefined;
      const waiting = response.writableLength;
      // Only a reader that is behind is cut: for one that keeps up, a frame may have any size.
      if (draining !== undefined && waiting + text.length > limits.maxBufferBytes) {
        cut(`the reader is slow: ${waiting} bytes wait for it`);
        return undefined;
      }
      if (response.write(text, onWritten)) return undefined;
      // One wait for all: a tool that does not await its events must not leave a listener for each.
      draining ??= drain(response, limits.stallMs, cut, () => {
        draining = undefined;
        if (unread !== undefined) limits.unread?.delete(unread);
      });
      const { ended } = draining;
      unread ??= toUnread(response, caller, cut);
      limits.unread?.note(unread);
      return ended;
    },
    end: () => void response.end(),
    cut,
  };
}

/** A wait until the client has taken everything. */
interface Drain {
  readonly ended: Promise<void>;
  end(): void;
}

/** How many times within `stallMs` we check whether the client took something. */
const checksPerStall = 4;

/**
 * Calls back when the client took nothing for `stallMs`, until the returned function is called. A client that takes some of a
 * large frame may take its time. The timer of the socket cannot be used: bytes that the client sends restart it.
 */
function watchStall(
  response: ServerResponse,
  stallMs: number,
  onStalled: (reason: string) => void,
): () => void {
  let last = queuedBytes(response);
  let unchanged = 0;
  const timer = setInterval(() => {
    const queued = queuedBytes(response);
    unchanged = queued === last ? unchanged + 1 : 0;
    last = queued;
    if (unchanged < checksPerStall) return;
    clearInterval(timer);
    onStalled(`the reader took nothing for ${stallMs} ms`);
  }, stallMs / checksPerStall);
  timer.unref();
  return () => clearInterval(timer);
}

/** Bytes of the writes underway that the system has not taken. Only Node's handle of the socket sees that a part of a write was taken. */
function queuedBytes(response: ServerResponse): number {
  const socket = response.socket as SocketWithHandle | null;
  return socket?._handle?.writeQueueSize ?? response.writableLength;
}

interface SocketWithHandle {
  readonly writableLength: number;
  readonly _handle?: { readonly writeQueueSize?: number } | null;
}

/**
 * Waits until the client took everything, or is gone. The event "drain" is not enough: in Node 22 a response that was corked during a
 * write never emits it, so the sink also ends the wait when a write is done and nothing is left.
 */
function drain(
  response: ServerResponse,
  stallMs: number,
  cut: (reason: string) => void,
  onEnd: () => void,
): Drain {
  const { promise, resolve } = createDeferred<void>();
  const stopWatch = watchStall(response, stallMs, cut);
  const end = (): void => {
    stopWatch();
    response.off("drain", end);
    response.off("close", end);
    onEnd();
    resolve();
  };
  response.once("drain", end);
  response.once("close", end);
  return { ended: promise, end };
}

function toUnread(
  response: ServerResponse,
  caller: string | undefined,
  cut: (reason: string) => void,
): UnreadAnswer {
  const owner = caller ?? response.req.socket.remoteAddress;
  return { owner, waiting: () => (response.destroyed ? 0 : response.writableLength), cut };
}

/** Cuts a reader that takes nothing of a complete answer that did not fit into the buffers of the system. */
function cutIfStalled(response: ServerResponse, limits: SinkLimits, caller: string | undefined): void {
  const { stallMs, onCut, unread } = limits;
  const { socket } = response;
  if (socket === null || socket.writableLength === 0) return;
  const cut = (reason: string): void => {
    onCut(reason);
    response.destroy();
  };
  const answer = toUnread(response, caller, cut);
  const stopWatch = watchStall(response, stallMs, cut);
  response.once("close", () => {
    stopWatch();
    unread?.delete(answer);
  });
  unread?.note(answer);
}
