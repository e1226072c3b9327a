import {
  createServer as createNodeServer,
  type IncomingMessage,
  type Server as NodeServer,
  type ServerResponse,
} from "node:http";
import type { AddressInfo, Socket } from "node:net";
import {
  andThen,
  type Awaitable,
  isPromise,
  systemClock,
  timedOut,
  waitFor,
  Repeats,
} from "@junctor/core/async";
import { isLoopback } from "@junctor/core/channel";
import { BindError, RpcError } from "@junctor/core/errors";
import type { Server } from "@junctor/core/mcp";
import { assertKnownKeys } from "@junctor/core/options";
import { limitConnections, toTimeouts } from "./connections.ts";
import { type HttpLoad, type OnWarning, writeWarning } from "./endpoint.ts";
import { HttpHandler } from "./handler.ts";
import { listenHttpOptionKeys, type ListenHttpOptions } from "./http-options.ts";
import { watchMemory } from "./memory-watch.ts";
import { NodeReply, NodeRequest, readNodeBody } from "./node-reply.ts";
import { type Routed, sendError, type SinkLimits, Unread } from "./reply.ts";
import type { PipedFrom } from "./session-table.ts";
import { createTlsListener, followTlsFiles } from "./tls.ts";

/**
 * An HTTP endpoint that is up. Disposing it refuses new calls, says so on `/health`, lets calls underway finish, ends
 * streams properly, and closes it.
 */
export interface HttpListener extends AsyncDisposable {
  readonly host: string;
  readonly port: number;
  /** Where clients connect. */
  readonly url: string;
  inspect(): HttpLoad;
  /** From now on no call begins, and `/ready` and `/health` say 503. Running calls may finish. */
  drain(): void;
  /** Serves a request that another process of the same gateway accepted and passed on. */
  pipe(incoming: IncomingMessage, response: ServerResponse, from: PipedFrom): void;
  /** The same as disposing it, for JavaScript without `await using`. */
  close(): Promise<void>;
}

/** Implements `listenHttp`, in a file of its own so that servers on stdio do not load HTTP. */
export async function startListener(server: Server, options: ListenHttpOptions = {}): Promise<HttpListener> {
  assertKnownKeys("listenHttp", options, listenHttpOptionKeys);
  const { host = "127.0.0.1", port = 7780, path = "/mcp", graceMs = 10_000, tls } = options;
  const { onWarning = writeWarning } = options;
  if (!isLoopback(host) && options.authenticate === undefined)
    throw new BindError(host, "no authentication is set up");
  const handler = new HttpHandler(server, { ...options, host });
  const limits = toSinkLimits(options, onWarning);
  const traffic = new Traffic(handler, limits, onWarning);
  const listener = createListener(options, traffic);
  await new Promise<void>((resolve, reject) => {
    listener.once("error", reject);
    listener.listen({ port, host, backlog: maxUnaccepted }, resolve);
  });
  const stopTls = tls === undefined ? undefined : followTlsFiles(listener, tls, onWarning);
  const memory = watchMemory({
    maxBytes: options.maxMemoryBytes,
    onLook: (shortage) => {
      handler.shed(shortage);
      if (shortage > 0) limits.unread.shrink(limits.unread.bytes / 2);
    },
  });
  handler.onMany(memory.look);
  const stop = async (): Promise<void> => {
    const startedAt = systemClock.now();
    const leftMs = (): number => Math.max(0, startedAt + graceMs - systemClock.now());
    traffic.isStopping = true;
    handler.drain();
    server.drain();
    await traffic.settle(leftMs);
    handler.close();
    memory.stop();
    stopTls?.();
    // The answers still have to reach their readers.
    await waitFor(traffic.untilSent(), { ms: Math.max(leftMs(), 500) });
    await closeListener(listener);
  };
  let stopped: Promise<void> | undefined;
  const close = (): Promise<void> => (stopped ??= stop());
  const bound = listener.address() as AddressInfo;
  const url = `${tls === undefined ? "http" : "https"}://${host.includes(":") ? `[${host}]` : host}:${bound.port}${path}`;
  options.pages?.listensAt?.(url);
  return {
    host,
    port: bound.port,
    url,
    inspect: () => handler.inspect(),
    drain: () => handler.drain(),
    pipe: (incoming, response, from) => traffic.serve(incoming, response, undefined, from),
    close,
    [Symbol.asyncDispose]: close,
  };
}

function toSinkLimits(
  options: ListenHttpOptions,
  onWarning: OnWarning,
): SinkLimits & { readonly unread: Unread } {
  const cuts = new Repeats({ clock: systemClock });
  return {
    maxBufferBytes: options.maxBufferBytes ?? 1024 * 1024,
    stallMs: options.stallMs ?? 60_000,
    onRefused: options.onRefused,
    unread: new Unread({
      maxBytes: options.maxUnreadBytes ?? 256 * 1024 * 1024,
      maxBytesEach: () => options.perCaller?.unreadBytes ?? 64 * 1024 * 1024,
      clock: options.clock ?? systemClock,
    }),
    onCut: (reason) => {
      const times = cuts.note(reason.replaceAll(/\d+/g, ""));
      const text = times === 1 ? "A client was" : `${times} clients were`;
      if (times !== undefined) onWarning(`${text} cut off: ${reason}`);
    },
  };
}

function createListener(options: ListenHttpOptions, traffic: Traffic): NodeServer {
  const { headersTimeoutMs = 10_000, requestTimeoutMs = 30_000, maxConnections = 16_384, tls } = options;
  const settings = {
    ...toTimeouts(headersTimeoutMs, requestTimeoutMs),
    keepAliveTimeout: 65_000,
    noDelay: true,
  };
  const listener = tls === undefined ? createNodeServer(settings) : createTlsListener(settings, tls);
  listener.on("connection", () => traffic.arrived++);
  listener.on("request", (incoming, response) => traffic.enter(incoming, response));
  // With `Expect: 100-continue`, a client sends its body only after the request was accepted.
  listener.on("checkContinue", (incoming: IncomingMessage, response: ServerResponse) =>
    traffic.enter(incoming, response, () => response.writeContinue()),
  );
  limitConnections(listener, maxConnections);
  // The size of all headers is limited. With a limit on their number, Node would drop some silently, perhaps `Origin`.
  listener.maxHeadersCount = 0;
  return listener;
}

async function closeListener(listener: NodeServer): Promise<void> {
  const closed = new Promise<void>((resolve) => listener.close(() => resolve()));
  listener.closeIdleConnections();
  if ((await waitFor(closed, { ms: 500 })) === timedOut) listener.closeAllConnections();
  await closed;
}

/**
 * Connections that the system queues until Node accepts them. With Node's 511, if a thousand clients connect at once, some of
 * them believe that they are connected, wait for seconds, and are reset.
 */
const maxUnaccepted = 4096;

/** The requests of a listener, from their arrival until they are answered. */
class Traffic {
  readonly #handler: HttpHandler;
  readonly #limits: SinkLimits;
  readonly #onWarning: OnWarning;
  /** The newest answer on each socket. */
  readonly #newest = new Map<Socket, ServerResponse>();
  #running = 0;
  #onIdle: (() => void) | undefined;
  /** Counts connections and requests. */
  arrived = 0;
  isStopping = false;

  constructor(handler: HttpHandler, limits: SinkLimits, onWarning: OnWarning) {
    this.#handler = handler;
    this.#limits = limits;
    this.#onWarning = onWarning;
  }

  /**
   * Serves one request of a socket at a time. Node would start all pipelined requests, and only the first one would be told when
   * the client is gone.
   */
  enter(incoming: IncomingMessage, response: ServerResponse, onRead?: () => void): void {
    const { socket } = incoming;
    this.arrived++;
    const before = this.#newest.get(socket);
    this.#newest.set(socket, response);
    if (before === undefined) socket.once("close", () => this.#newest.delete(socket));
    if (before === undefined || isOver(before)) return this.serve(incoming, response, onRead);
    before.once("close", () => {
      if (!socket.destroyed) this.serve(incoming, response, onRead);
    });
  }

  /** Calls `onRead` before it reads the body: a client that sent `Expect: 100-continue` waits for that. */
  serve(incoming: IncomingMessage, response: ServerResponse, onRead?: () => void, from?: PipedFrom): void {
    const http = new NodeRequest(incoming);
    const reply = new NodeReply(response, this.#limits);
    if (this.isStopping) response.shouldKeepAlive = false;
    const fail = (error: unknown): void => {
      this.#onWarning(`Serving ${http.method} ${http.path} failed`, error);
      if (response.headersSent) response.destroy();
      else sendError(reply, 500, new RpcError("rpc.internal", "Internal error"));
    };
    const route = (): Routed =>
      from ? this.#handler.admit(http, reply, from) : this.#handler.handle(http, reply);
    const routed = (): Awaitable<void> =>
      andThen(route(), (wanted) => {
        if (wanted === undefined) return;
        if (Number(incoming.headers["content-length"] ?? 0) <= wanted.maxBytes) onRead?.();
        readNodeBody(incoming, wanted.maxBytes, (body) => this.#run(() => wanted.take(body), fail));
      });
    this.#run(routed, fail);
  }

  #run(work: () => Awaitable<void>, fail: (error: unknown) => void): void {
    try {
      const worked = work();
      if (!isPromise(worked)) return;
      this.#running++;
      worked.then(this.#done, (error: unknown) => {
        fail(error);
        this.#done();
      });
    } catch (error) {
      fail(error);
    }
  }

  readonly #done = (): void => {
    if (--this.#running === 0) this.#onIdle?.();
  };

  /** Waits for running calls, and for calls that arrive meanwhile. The listener still listens, because answers to questions are requests of their own. */
  async settle(leftMs: () => number): Promise<void> {
    await waitFor(this.#untilIdle(), { ms: leftMs() });
    const before = this.arrived;
    while (leftMs() > 0 && this.arrived < before + maxUnaccepted && (await this.#hasArrivals()))
      await waitFor(this.#untilIdle(), { ms: leftMs() });
  }

  /** Resolves when every answer, or every one that `isIncluded` selects, has reached its reader. */
  async untilSent(isIncluded: (response: ServerResponse) => boolean = () => true): Promise<void> {
    const unsent = [...this.#newest.values()].filter((response) => isIncluded(response) && !isOver(response));
    await Promise.all(unsent.map((response) => new Promise((resolve) => response.once("close", resolve))));
  }

  /** Resolves when every call was answered. Does not wait for streams that a GET opened. */
  async #untilIdle(): Promise<void> {
    const isCall = (response: ServerResponse): boolean => response.req.method === "POST";
    for (;;) {
      await this.untilSent(isCall);
      if (this.#running > 0) {
        await new Promise<void>((resolve) => {
          this.#onIdle = resolve;
        });
      }
      if (![...this.#newest.values()].some((response) => isCall(response) && !isOver(response))) return;
    }
  }

  /**
   * Whether connections or requests arrived in the last turns of the event loop. More of them may be in the queue of the system, and
   * would be cut without an answer if we closed the port. Node accepts one connection per turn, and reads it in the next.
   */
  async #hasArrivals(): Promise<boolean> {
    const before = this.arrived;
    for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
    return this.arrived > before;
  }
}

function isOver(response: ServerResponse): boolean {
  return response.writableFinished || response.destroyed;
}
