import { Buffer } from "node:buffer";
import { andThen, recover } from "../../async/awaitable.ts";
import { createDeferred, type Deferred } from "../../async/deferred.ts";
import { RpcError } from "../../errors/rpc-error.ts";
import type { Server } from "../../mcp/server.ts";
import { sendError } from "./exchange.ts";
import { createHttpHandler, type HttpOptions, writeWarning } from "./handler.ts";
import type { FrameSink, HttpHeaders, HttpRequest, Reply } from "./reply.ts";

/** A function from a web-standard request to its response. */
export type FetchHandler = (request: Request) => Promise<Response>;

export interface FetchOptions extends HttpOptions {
  /** Most bytes that wait for one client; one more frame and it is cut. */
  readonly maxBufferBytes?: number;
}

/**
 * Serves MCP in anything that speaks the web's `Request` and `Response`: Hono, Bun, Deno, Workers. Loopback names are
 * served as they are; name others in `allowedHosts`.
 *
 * @example
 * app.all("/mcp", (c) => handler(c.req.raw)); // Hono
 */
export function toFetchHandler(server: Server, options: FetchOptions = {}): FetchHandler {
  const handler = createHttpHandler(server, options);
  const { onWarning = writeWarning } = options;
  const limits: WebLimits = {
    maxBufferBytes: options.maxBufferBytes ?? 1024 * 1024,
    onCut: (reason) => onWarning(`A client was cut off: ${reason}`),
  };
  return (request) => {
    const answered = createDeferred<Response>();
    const http = fromWebRequest(request);
    const reply = toWebReply(request, answered, limits);
    const failed = (error: unknown): void => {
      onWarning(`Serving ${http.method} ${http.path} failed`, error);
      sendError(reply, 500, new RpcError("rpc.internal", "Internal error"));
    };
    // A request whose body broke off gets no answer from the handler, but a runtime waits for one.
    const unread = (): void => answered.resolve(new Response(null, { status: 400 }));
    void andThen(
      recover(() => handler.handle(http, reply), failed),
      unread,
    );
    return answered.promise;
  };
}

function fromWebRequest(request: Request): HttpRequest {
  const url = new URL(request.url);
  const port = url.port === "" ? (url.protocol === "https:" ? 443 : 80) : Number(url.port);
  return {
    method: request.method,
    path: url.pathname,
    query: url.searchParams,
    header: (name) => request.headers.get(name) ?? (name === "host" ? url.host : undefined),
    hostCount: 1,
    localPort: port,
    readBody: (maxBytes) => readBody(request, maxBytes),
  };
}

async function readBody(request: Request, maxBytes: number): Promise<Uint8Array | "too_large" | "aborted"> {
  if (Number(request.headers.get("content-length")) > maxBytes) return "too_large";
  const chunks: Uint8Array[] = [];
  let length = 0;
  try {
    for await (const chunk of request.body ?? []) {
      length += (chunk as Uint8Array).length;
      if (length > maxBytes) return "too_large";
      chunks.push(chunk as Uint8Array);
    }
  } catch {
    return "aborted"; // The client went away while sending.
  }
  return Buffer.concat(chunks);
}

interface WebLimits {
  readonly maxBufferBytes: number;
  readonly onCut: (reason: string) => void;
}

function toWebReply(request: Request, answered: Deferred<Response>, limits: WebLimits): Reply {
  let hungUp: (() => void) | undefined;
  let isGone = false;
  let streaming: FrameSink | undefined;
  return {
    send: (status, headers, body) => {
      streaming?.cut("serving it failed");
      const hasNone = status === 202 || status === 204;
      answered.resolve(new Response(hasNone ? null : (body ?? null), { status, headers }));
    },
    stream: (status, headers, onClosed) => {
      const left = (): void => {
        isGone = true;
        hungUp?.();
      };
      const { sink, response } = openSink(status, headers, limits, left, onClosed);
      streaming = sink;
      answered.resolve(response);
      return sink;
    },
    onHangUp: (callback) => {
      hungUp = callback;
      if (isGone || request.signal.aborted) callback();
      else request.signal.addEventListener("abort", callback, { once: true });
    },
  };
}

function openSink(
  status: number,
  headers: HttpHeaders,
  { maxBufferBytes, onCut }: WebLimits,
  onHangUp: () => void,
  onClosed: () => void,
): { readonly sink: FrameSink; readonly response: Response } {
  let controller!: ReadableStreamDefaultController<Uint8Array>;
  let isOpen = true;
  let room: Deferred<void> | undefined;
  const close = (): void => {
    if (!isOpen) return;
    isOpen = false;
    room?.resolve();
    onClosed();
  };
  // The default strategy counts chunks, so a limit on bytes would never be met.
  const strategy = new ByteLengthQueuingStrategy({ highWaterMark: 16 * 1024 });
  const body = new ReadableStream<Uint8Array>(
    {
      start: (given) => {
        controller = given;
      },
      pull: () => {
        room?.resolve();
        room = undefined;
      },
      cancel: () => {
        close();
        onHangUp();
      },
    },
    strategy,
  );
  const cut = (reason: string): void => {
    if (!isOpen) return;
    onCut(reason);
    close();
    controller.error(new Error(reason));
    onHangUp();
  };
  const sink: FrameSink = {
    get isOpen() {
      return isOpen;
    },
    write: (text) => {
      if (!isOpen) return Promise.resolve();
      const bytes = Buffer.from(text);
      const waiting = strategy.highWaterMark - (controller.desiredSize ?? 0);
      // Only a reader that is behind is cut: to one that keeps up, a frame may be as large as it is.
      if (room !== undefined && waiting + bytes.length > maxBufferBytes) {
        cut(`the reader is slow: ${waiting} bytes wait for it`);
        return Promise.resolve();
      }
      controller.enqueue(bytes);
      if ((controller.desiredSize ?? 0) > 0) return Promise.resolve();
      room ??= createDeferred();
      return room.promise;
    },
    end: () => {
      if (isOpen) controller.close();
      close();
    },
    cut,
  };
  return { sink, response: new Response(body, { status, headers }) };
}
