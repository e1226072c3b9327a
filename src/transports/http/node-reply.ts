import type { IncomingMessage, ServerResponse } from "node:http";
import type { FrameSink, HttpHeaders, HttpRequest, Reply } from "./reply.ts";

export interface SinkLimits {
  /** Most bytes that wait for one client; one more frame and it is cut. */
  readonly maxBufferBytes: number;
  /** How long a client may take nothing while something waits for it. */
  readonly stallMs: number;
  /** Told why a client was cut. */
  readonly onCut: (reason: string) => void;
}

/** A request of `node:http`. */
export function fromIncoming(incoming: IncomingMessage): HttpRequest {
  const url = incoming.url ?? "/";
  const queryAt = url.indexOf("?");
  const { headers } = incoming;
  return {
    method: incoming.method ?? "GET",
    path: queryAt === -1 ? url : url.slice(0, queryAt),
    get query() {
      return new URLSearchParams(queryAt === -1 ? "" : url.slice(queryAt + 1));
    },
    header: (name) => headers[name] as string | undefined,
    get hostCount() {
      return countHosts(incoming.rawHeaders);
    },
    get localPort() {
      return incoming.socket.localPort;
    },
    readBody: (maxBytes) => readBody(incoming, maxBytes),
  };
}

/** Node keeps the first of several `Host` headers and drops the others silently; somebody else may keep the last. */
function countHosts(rawHeaders: readonly string[]): number {
  let count = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index];
    if (name?.length === 4 && name.toLowerCase() === "host") count++;
  }
  return count;
}

function readBody(
  incoming: IncomingMessage,
  maxBytes: number,
): Promise<Uint8Array | "too_large" | "aborted"> {
  return new Promise((resolve) => {
    const chunks: Uint8Array[] = [];
    let length = 0;
    const give = (result: Uint8Array | "too_large" | "aborted"): void => {
      incoming.off("data", onData);
      if (result === "too_large") incoming.resume(); // What is still on its way is read and dropped, so that our answer gets out.
      resolve(result);
    };
    const onData = (chunk: Uint8Array): void => {
      length += chunk.length;
      if (length > maxBytes) give("too_large");
      else chunks.push(chunk);
    };
    if (Number(incoming.headers["content-length"]) > maxBytes) return give("too_large");
    incoming.on("data", onData);
    incoming.once("end", () =>
      give(chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks)),
    );
    incoming.once("close", () => give("aborted"));
    incoming.once("error", () => give("aborted"));
  });
}

/** The answer to a request of `node:http`. */
export function toReply(response: ServerResponse, limits: SinkLimits): Reply {
  return {
    send: (status, headers, body) => {
      if (response.destroyed) return;
      // With its length known, an answer is not chunked, and leaves together with its headers.
      const length = body === undefined ? 0 : Buffer.byteLength(body);
      response.writeHead(status, { ...headers, "content-length": String(length) });
      response.end(body);
    },
    stream: (status, headers) => openSink(response, status, headers, limits),
    onHangUp: (callback) => {
      response.once("close", () => {
        if (!response.writableFinished) callback();
      });
    },
  };
}

function openSink(
  response: ServerResponse,
  status: number,
  headers: HttpHeaders,
  limits: SinkLimits,
): FrameSink {
  response.writeHead(status, headers as Record<string, string>);
  response.flushHeaders();
  const isOpen = (): boolean => !response.destroyed && !response.writableEnded;
  const cut = (reason: string): void => {
    if (!isOpen()) return;
    limits.onCut(reason);
    response.destroy();
  };
  return {
    get isOpen() {
      return isOpen();
    },
    write: (text) => {
      if (!isOpen()) return Promise.resolve();
      const waiting = response.writableLength;
      if (waiting > 0 && waiting + text.length > limits.maxBufferBytes) {
        cut(`the reader is slow: ${waiting} bytes wait for it`);
        return Promise.resolve();
      }
      return response.write(text) ? Promise.resolve() : drained(response, limits.stallMs, cut);
    },
    end: () => void response.end(),
    cut,
  };
}

/** Resolves when the client took what waits, or is gone. */
function drained(response: ServerResponse, stallMs: number, cut: (reason: string) => void): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      response.off("drain", done);
      response.off("close", done);
      resolve();
    };
    const timer = setTimeout(() => cut(`the reader took nothing for ${stallMs} ms`), stallMs);
    response.once("drain", done);
    response.once("close", done);
  });
}
