import { createServer as createNodeServer, type Server as NodeServer } from "node:http";
import type { AddressInfo } from "node:net";
import { settlesWithin, systemClock } from "../../async/clock.ts";
import { BindError } from "../../errors/bind-error.ts";
import { RpcError } from "../../errors/rpc-error.ts";
import type { Server } from "../../mcp/server.ts";
import { isLoopback } from "../loopback.ts";
import { sendError } from "./exchange.ts";
import { createHttpHandler, type HttpHandler, type HttpOptions } from "./handler.ts";
import { fromIncoming, type SinkLimits, toReply } from "./node-reply.ts";

export interface ListenHttpOptions extends HttpOptions {
  readonly port?: number;
  /** Beyond loopback, `authenticate` must be given. */
  readonly host?: string;
  readonly maxBufferBytes?: number;
  readonly stallMs?: number;
  /** How long a client may take to send its headers. */
  readonly headersTimeoutMs?: number;
  /** How long a client may take to send its whole request. */
  readonly requestTimeoutMs?: number;
  readonly maxConnections?: number;
  /** How long calls in flight may take when the listener is disposed. */
  readonly graceMs?: number;
  /** Told what went wrong without anybody to answer: clients that were cut, faults of our own. */
  readonly onWarning?: (text: string, error?: unknown) => void;
}

/** An HTTP endpoint that is up. Disposing it lets calls in flight finish, ends streams properly, and closes it. */
export interface HttpListener extends AsyncDisposable {
  readonly host: string;
  readonly port: number;
  /** Where clients connect. */
  readonly url: string;
}

/**
 * Serves MCP over HTTP, every revision on one URL.
 *
 * @example
 * await using listener = await listenHttp(server, { port: 7780 });
 * console.error(`listening on ${listener.url}`);
 */
export async function listenHttp(server: Server, options: ListenHttpOptions = {}): Promise<HttpListener> {
  const {
    host = "127.0.0.1",
    port = 7780,
    path = "/mcp",
    graceMs = 10_000,
    onWarning = writeWarning,
  } = options;
  if (!isLoopback(host) && options.authenticate === undefined)
    throw new BindError(host, "no authentication is set up");
  const handler = createHttpHandler(server, { ...options, host });
  const limits: SinkLimits = {
    maxBufferBytes: options.maxBufferBytes ?? 1024 * 1024,
    stallMs: options.stallMs ?? 60_000,
    onCut: (reason) => onWarning(`A client was cut off: ${reason}`),
  };
  const running = new Set<Promise<void>>();
  const listener = createListener(handler, limits, running, options, onWarning);
  await new Promise<void>((resolve, reject) => {
    listener.once("error", reject);
    listener.listen(port, host, resolve);
  });
  const bound = listener.address() as AddressInfo;
  const name = host.includes(":") ? `[${host}]` : host;
  return {
    host,
    port: bound.port,
    url: `http://${name}:${bound.port}${path}`,
    [Symbol.asyncDispose]: async () => {
      const closed = new Promise<void>((resolve) => listener.close(() => resolve()));
      handler.drain();
      server.drain();
      await settlesWithin(Promise.all(running), graceMs, systemClock);
      handler.close();
      // Streams that were just ended still have their last bytes to send.
      listener.closeIdleConnections();
      if (!(await settlesWithin(closed, 500, systemClock))) listener.closeAllConnections();
      await closed;
    },
  };
}

function createListener(
  handler: HttpHandler,
  limits: SinkLimits,
  running: Set<Promise<void>>,
  options: ListenHttpOptions,
  onWarning: (text: string, error?: unknown) => void,
): NodeServer {
  const { headersTimeoutMs = 10_000, requestTimeoutMs = 30_000, maxConnections = 16_384 } = options;
  const timeouts = {
    headersTimeout: headersTimeoutMs,
    requestTimeout: requestTimeoutMs,
    keepAliveTimeout: 65_000,
  };
  const listener = createNodeServer({ ...timeouts, noDelay: true }, (incoming, response) => {
    const reply = toReply(response, limits);
    const served = handler.handle(fromIncoming(incoming), reply).catch((error: unknown) => {
      onWarning(`Serving ${incoming.method} ${incoming.url} failed`, error);
      if (response.headersSent) response.destroy();
      else sendError(reply, 500, new RpcError("rpc.internal", "Internal error"));
    });
    running.add(served);
    void served.then(() => running.delete(served));
  });
  listener.maxConnections = maxConnections;
  return listener;
}

function writeWarning(text: string, error?: unknown): void {
  console.error(error === undefined ? text : `${text}:`, ...(error === undefined ? [] : [error]));
}
