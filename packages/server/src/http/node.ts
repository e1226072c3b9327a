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
import type { PipedFrom } from "./elsewhere.ts";
import { type HttpLoad, type OnWarning, writeWarning } from "./endpoint.ts";
import { createHttpHandler, type HttpHandler } from "./handler.ts";
import { listenHttpOptionKeys, type ListenHttpOptions } from "./listen-options.ts";
import { watchMemory } from "./memory-watch.ts";
import { NodeReply, NodeRequest, readNodeBody } from "./node-reply.ts";
import { sendError, type SinkLimits } from "./reply.ts";
import { withServerCard } from "./server-card.ts";
import { createTlsListener, followTlsFiles } from "./tls.ts";
import { Unread } from "./unread.ts";

/**
 * An HTTP endpoint that is up. Disposing it refuses new calls and says so on `/health`, lets those in flight finish, ends
 * streams properly, and closes it.
 */
export interface HttpListener extends AsyncDisposable {
  readonly host: string;
  readonly port: number;
  /** Where clients connect. */
  readonly url: string;
  inspect(): HttpLoad;
  /** From now on no call begins, and `/ready` and `/health` say 503. Calls that run may finish. */
  drain(): void;
  /** Serves a request that another process of the same gateway let in and passed on. */
  pipe(incoming: IncomingMessage, response: ServerResponse, from: PipedFrom): void;
  /** The same as disposing it, for those whose JavaScript has no `await using`. */
  close(): Promise<void>;
}

/** What `listenHttp` does, in a file of its own so that servers on stdio do not load HTTP. */
export async function startListener(server: Server, options: ListenHttpOptions = {}): Promise<HttpListener> {
  assertKnownKeys("listenHttp", options, listenHttpOptionKeys);
  const {
    host = "127.0.0.1",
    port = 7780,
    path = "/mcp",
    graceMs = 10_000,
    onWarning = writeWarning,
  } = options;
  if (!isLoopback(host) && options.authenticate === undefined)
    throw new BindError(host, "no authentication is set up");
  const handler = withServerCard(createHttpHandler(server, { ...options, host }), server, {
    ...options,
    host,
  });
  const cuts = new Repeats({ clock: systemClock });
  const limits: SinkLimits = {
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
  const activity: Activity = {
    running: 0,
    arrived: 0,
    isStopping: false,
    onIdle: undefined,
    newest: new Map(),
  };
  const { listener, pipe } = createListener({ ...options, handler, limits, activity, onWarning });
  await new Promise<void>((resolve, reject) => {
    listener.once("error", reject);
    listener.listen({ port, host, backlog: maxUnaccepted }, resolve);
  });
  const { tls } = options;
  const stopTls = tls === undefined ? undefined : followTlsFiles(listener, tls, onWarning);
  const memory = watchMemory({
    maxBytes: options.maxMemoryBytes,
    onLook: (shortage) => {
      handler.shed(shortage);
      if (shortage > 0) limits.unread?.shrink(limits.unread.bytes / 2);
    },
  });
  handler.onMany(memory.look);
  const stop = async (): Promise<void> => {
    const startedAt = systemClock.now();
    const leftMs = (): number => Math.max(0, startedAt + graceMs - systemClock.now());
    activity.isStopping = true;
    handler.drain();
    server.drain();
    // Still listening: calls that wait for an answer to a question get it by a request of its own.
    await waitFor(untilIdle(activity), { ms: leftMs() });
    const before = activity.arrived;
    while (leftMs() > 0 && activity.arrived < before + maxUnaccepted && (await hasArrivals(activity)))
      await waitFor(untilIdle(activity), { ms: leftMs() });
    handler.close();
    memory.stop();
    stopTls?.();
    // The answers have yet to reach their readers.
    const sent = untilSent(activity, () => true);
    await waitFor(sent, { ms: Math.max(leftMs(), 500) });
    const closed = new Promise<void>((resolve) => listener.close(() => resolve()));
    listener.closeIdleConnections();
    if ((await waitFor(closed, { ms: 500 })) === timedOut) listener.closeAllConnections();
    await closed;
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
    pipe,
    close,
    [Symbol.asyncDispose]: close,
  };
}

/**
 * Connections that the system queues until Node accepts them. With Node's 511, a thousand clients that connect at once
 * leave some that believe they are connected, wait for seconds, and are reset.
 */
const maxUnaccepted = 4096;

/** The work of a listener. */
interface Activity {
  running: number;
  /** Counts connections and requests. */
  arrived: number;
  isStopping: boolean;
  onIdle: (() => void) | undefined;
  /** The newest answer on each socket. */
  readonly newest: Map<Socket, ServerResponse>;
}

/**
 * Whether connections or requests arrived in the last turns of the event loop. More of them may be in the queue of the system, and
 * would be cut without an answer if we closed the port. Node accepts one connection in each turn of the event loop, and reads it in the next.
 */
async function hasArrivals(activity: Activity): Promise<boolean> {
  const before = activity.arrived;
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
  return activity.arrived > before;
}

/** Resolves when every call has been answered. Streams that a GET opened are not waited for. */
async function untilIdle(activity: Activity): Promise<void> {
  const isCall = (response: ServerResponse): boolean => response.req.method === "POST";
  for (;;) {
    await untilSent(activity, isCall);
    if (activity.running > 0) {
      await new Promise<void>((resolve) => {
        activity.onIdle = resolve;
      });
    }
    if (![...activity.newest.values()].some((response) => isCall(response) && !isOver(response))) return;
  }
}

async function untilSent({ newest }: Activity, which: (response: ServerResponse) => boolean): Promise<void> {
  const unsent = [...newest.values()].filter((response) => which(response) && !isOver(response));
  await Promise.all(unsent.map((response) => new Promise((resolve) => response.once("close", resolve))));
}

function isOver(response: ServerResponse): boolean {
  return response.writableFinished || response.destroyed;
}

interface ListenerOptions extends ListenHttpOptions {
  readonly handler: HttpHandler;
  readonly limits: SinkLimits;
  readonly activity: Activity;
  readonly onWarning: OnWarning;
}

function createListener(options: ListenerOptions): {
  readonly listener: NodeServer;
  readonly pipe: HttpListener["pipe"];
} {
  const { handler, limits, activity, onWarning } = options;
  const done = (): void => {
    if (--activity.running === 0) activity.onIdle?.();
  };

  /** `onRead` is called before the body is read: a client that sent `Expect: 100-continue` waits for that. */
  const serve = (
    incoming: IncomingMessage,
    response: ServerResponse,
    onRead?: () => void,
    from?: PipedFrom,
  ): void => {
    const http = new NodeRequest(incoming);
    const reply = new NodeReply(response, limits);
    if (activity.isStopping) response.shouldKeepAlive = false;
    const fail = (error: unknown): void => {
      onWarning(`Serving ${http.method} ${http.path} failed`, error);
      if (response.headersSent) response.destroy();
      else sendError(reply, 500, new RpcError("rpc.internal", "Internal error"));
    };
    const run = (work: () => Awaitable<void>): void => {
      try {
        const worked = work();
        if (!isPromise(worked)) return;
        activity.running++;
        worked.then(done, (error: unknown) => {
          fail(error);
          done();
        });
      } catch (error) {
        fail(error);
      }
    };
    run(() =>
      andThen(from ? handler.admit(http, reply, from) : handler.handle(http, reply), (wanted) => {
        if (wanted === undefined) return;
        if (Number(incoming.headers["content-length"] ?? 0) <= wanted.maxBytes) onRead?.();
        readNodeBody(incoming, wanted.maxBytes, (body) => run(() => wanted.take(body)));
      }),
    );
  };

  /**
   * One request of a socket at a time. Node would start all that a client sends ahead, and tell none of them but the
   * first when the client is gone.
   */
  const inTurn = (incoming: IncomingMessage, response: ServerResponse, onRead?: () => void): void => {
    const { socket } = incoming;
    activity.arrived++;
    const before = activity.newest.get(socket);
    activity.newest.set(socket, response);
    if (before === undefined) socket.once("close", () => activity.newest.delete(socket));
    if (before === undefined || isOver(before)) return serve(incoming, response, onRead);
    before.once("close", () => {
      if (!socket.destroyed) serve(incoming, response, onRead);
    });
  };

  const { headersTimeoutMs = 10_000, requestTimeoutMs = 30_000, maxConnections = 16_384 } = options;
  const settings = {
    ...toTimeouts(headersTimeoutMs, requestTimeoutMs),
    keepAliveTimeout: 65_000,
    noDelay: true,
  };
  const { tls } = options;
  const listener = tls === undefined ? createNodeServer(settings) : createTlsListener(settings, tls);
  listener.on("connection", () => activity.arrived++);
  listener.on("request", (incoming, response) => inTurn(incoming, response));
  // With `Expect: 100-continue`, a client sends its body only when the request was let in.
  listener.on("checkContinue", (incoming: IncomingMessage, response: ServerResponse) =>
    inTurn(incoming, response, () => response.writeContinue()),
  );
  limitConnections(listener, maxConnections);
  // The size of all headers is limited. With a limit on their number, Node would drop some silently, perhaps `Origin`.
  listener.maxHeadersCount = 0;
  return { listener, pipe: (incoming, response, from) => serve(incoming, response, undefined, from) };
}
