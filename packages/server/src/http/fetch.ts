import { Buffer } from "node:buffer";
import {
  type Clock,
  systemClock,
  timedOut,
  waitFor,
  createDeferred,
  type Deferred,
} from "@junctor/core/async";
import { RpcError } from "@junctor/core/errors";
import type { WrittenJson } from "@junctor/core/json";
import type { Server } from "@junctor/core/mcp";
import { writeWarning } from "./endpoint.ts";
import { HttpHandler } from "./handler.ts";
import type { HttpOptions } from "./http-options.ts";
import {
  type Body,
  type FrameSink,
  type HttpHeaders,
  type HttpRequest,
  refuseStopping,
  type Reply,
  sendError,
  type SinkLimits,
} from "./reply.ts";

/** A function from a web-standard request to its response. The caller that made it closes it. */
export interface FetchHandler {
  (request: Request): Promise<Response>;
  /** From now on `GET /health` says 503 and no call begins. Resolves when the calls underway have ended. */
  drain(): Promise<void>;
  /**
   * Ends every stream, aborts running calls, and forgets every session. Later requests are refused with 503. Takes a
   * second at most.
   */
  close(): Promise<void>;
}

/** How `toFetchHandler` answers, and how long it waits for a slow client. */
export interface FetchOptions extends HttpOptions {
  /** The most bytes that wait for one client; one more frame and it is cut. */
  readonly maxBufferBytes?: number;
  /** How long a client may take nothing while bytes wait for it. */
  readonly stallMs?: number;
}

/**
 * Serves MCP in anything that speaks the web's `Request` and `Response`: Hono, Bun, Deno, Workers. Loopback hosts are always
 * served; name others in `allowedHosts`.
 *
 * @example
 * app.all("/mcp", (c) => handler(c.req.raw)); // Hono
 */
export function toFetchHandler(server: Server, options: FetchOptions = {}): FetchHandler {
  const handler = new HttpHandler(server, options);
  const { onWarning = writeWarning, clock = systemClock } = options;
  const limits: WebSinkOptions = {
    maxBufferBytes: options.maxBufferBytes ?? 1024 * 1024,
    stallMs: options.stallMs ?? 60_000,
    clock,
    onCut: (reason) => onWarning(`A client was cut off: ${reason}`),
  };
  const running = new Map<WebReply, Promise<void>>();
  let isClosed = false;

  const serve = (request: Request): Promise<Response> => {
    const http = fromWebRequest(request);
    const reply = new WebReply(request.signal, limits);
    if (isClosed) {
      refuseStopping(reply);
      return reply.answered.promise;
    }
    const answer = async (): Promise<void> => {
      try {
        const wanted = await handler.handle(http, reply);
        await wanted?.take(await readBody(request, wanted.maxBytes));
      } catch (error) {
        onWarning(`Serving ${http.method} ${http.path} failed`, error);
        if (!reply.cut("serving it failed"))
          sendError(reply, 500, new RpcError("rpc.internal", "Internal error"));
      }
      reply.settle();
      running.delete(reply);
    };
    running.set(reply, answer());
    return reply.answered.promise;
  };
  const whenIdle = async (): Promise<void> => {
    while (running.size > 0) await Promise.all(running.values());
  };
  const drain = (): Promise<void> => {
    handler.drain();
    server.drain();
    return whenIdle();
  };
  const stop = async (): Promise<void> => {
    isClosed = true;
    void drain();
    handler.close();
    if ((await waitFor(whenIdle(), { ms: closeMs, clock })) !== timedOut) return;
    for (const reply of running.keys()) {
      if (reply.cut("the server is stopping")) continue;
      reply.leave();
      refuseStopping(reply);
    }
    await waitFor(whenIdle(), { ms: closeMs, clock });
  };
  let stopped: Promise<void> | undefined;
  return Object.assign(serve, { drain, close: (): Promise<void> => (stopped ??= stop()) });
}

/** How long `close` waits for ended streams, and then again for aborted calls. */
const closeMs = 500;

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
  };
}

async function readBody(request: Request, maxBytes: number): Promise<Body> {
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

/** The answer to a web-standard request. */
class WebReply implements Reply {
  readonly #signal: AbortSignal;
  readonly #limits: WebSinkOptions;
  readonly answered: Deferred<Response> = createDeferred<Response>();
  #sink: WebSink | undefined;
  #onHangUp: (() => void) | undefined;
  #state: "open" | "complete" | "gone" = "open";

  constructor(signal: AbortSignal, limits: WebSinkOptions) {
    this.#signal = signal;
    this.#limits = limits;
  }

  send(status: number, headers: HttpHeaders, body?: WrittenJson): void {
    const hasNoBody = status === 202 || status === 204;
    const whole = typeof body === "object" ? Buffer.concat(body) : body;
    this.answered.resolve(new Response(hasNoBody ? null : (whole ?? null), { status, headers }));
    this.#finish("complete");
  }

  stream(status: number, headers: HttpHeaders, onClosed: () => void): FrameSink {
    const sink = new WebSink(this.#limits, (isWhole) => {
      onClosed();
      this.#finish(isWhole ? "complete" : "gone");
    });
    this.#sink = sink;
    this.#watch();
    this.answered.resolve(new Response(sink.body, { status, headers }));
    // Not before the caller has the sink.
    if (this.#state === "gone") queueMicrotask(() => sink.abandon());
    return sink;
  }

  onHangUp(callback: () => void): void {
    this.#watch();
    if (this.#state === "gone") callback();
    else if (this.#state === "open") this.#onHangUp = callback;
  }

  /** Cuts the stream of the answer; false when there is none. */
  cut(reason: string): boolean {
    this.#sink?.cut(reason);
    return this.#sink !== undefined;
  }

  /** Serving is over. A request whose body broke off got no answer, but a runtime waits for one. */
  settle(): void {
    if (this.#sink === undefined && this.#state !== "complete") this.send(400, {});
  }

  /** Watches for the client to leave. Not for every request: most are answered at once. */
  #watch(): void {
    if (this.#state !== "open") return;
    if (this.#signal.aborted) this.#finish("gone");
    else this.#signal.addEventListener("abort", this.leave, { once: true });
  }

  /** Treats the client as gone, and aborts the call. */
  readonly leave = (): void => {
    this.#finish("gone");
    this.#sink?.abandon();
  };

  #finish(state: "complete" | "gone"): void {
    if (this.#state !== "open") return;
    this.#state = state;
    this.#signal.removeEventListener("abort", this.leave);
    const callback = this.#onHangUp;
    this.#onHangUp = undefined;
    if (state === "gone") callback?.();
  }
}

interface WebSinkOptions extends SinkLimits {
  readonly clock: Clock;
}

// The default strategy counts chunks, and we need a limit on bytes.
const strategy = new ByteLengthQueuingStrategy({ highWaterMark: 16 * 1024 });

/** A body that comes in pieces, as a web stream. */
class WebSink implements FrameSink {
  readonly body: ReadableStream<Uint8Array>;
  readonly #limits: WebSinkOptions;
  readonly #onClosed: (isWhole: boolean) => void;
  #controller!: ReadableStreamDefaultController<Uint8Array>;
  #isOpen = true;
  #writtenBytes = 0;
  #room: Deferred<void> | undefined;
  #stopTimer: (() => void) | undefined;

  /** Calls back when it has ended, was cut, or its reader cancelled it; `isWhole` says whether it ended properly. */
  constructor(limits: WebSinkOptions, onClosed: (isWhole: boolean) => void) {
    this.#limits = limits;
    this.#onClosed = onClosed;
    this.body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller;
        },
        pull: () => this.#makeRoom(),
        cancel: () => this.#close(false),
      },
      strategy,
    );
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  write(text: string): Promise<void> | undefined {
    if (!this.#isOpen) return undefined;
    const bytes = Buffer.from(text);
    // Only a reader that is behind is cut: for one that keeps up, a frame may have any size.
    if (this.#room !== undefined && this.#waitingBytes + bytes.length > this.#limits.maxBufferBytes) {
      this.cut(`the reader is slow: ${this.#waitingBytes} bytes wait for it`);
      return undefined;
    }
    this.#writtenBytes += bytes.length;
    this.#controller.enqueue(bytes);
    if ((this.#controller.desiredSize ?? 0) > 0) return undefined;
    if (this.#room === undefined) {
      this.#room = createDeferred();
      this.#watch();
    }
    return this.#room.promise;
  }

  end(): void {
    if (this.#isOpen) this.#controller.close();
    this.#close(true);
  }

  cut(reason: string): void {
    if (!this.#isOpen) return;
    this.#limits.onCut(reason);
    this.#fail(reason);
  }

  /** Ends it because the client is gone: what waits is dropped. */
  abandon(): void {
    if (this.#isOpen) this.#fail("the client is gone");
  }

  get #waitingBytes(): number {
    return strategy.highWaterMark - (this.#controller.desiredSize ?? 0);
  }

  /** No event says that the reader took a part, so what it took is measured when the time is over. */
  #watch(): void {
    const { clock, stallMs } = this.#limits;
    const taken = this.#writtenBytes - this.#waitingBytes;
    this.#stopTimer = clock.timer(stallMs, () => {
      if (this.#writtenBytes - this.#waitingBytes > taken) this.#watch();
      else this.cut(`the reader took nothing for ${stallMs} ms`);
    });
  }

  #makeRoom(): void {
    this.#stopTimer?.();
    this.#stopTimer = undefined;
    this.#room?.resolve();
    this.#room = undefined;
  }

  #fail(reason: string): void {
    this.#controller.error(new Error(reason));
    this.#close(false);
  }

  #close(isWhole: boolean): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#makeRoom();
    this.#onClosed(isWhole);
  }
}
