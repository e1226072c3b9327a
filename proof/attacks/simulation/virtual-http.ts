import type { Clock } from "../../../packages/core/src/async/clock.ts";
import { createDeferred, type Deferred } from "../../../packages/core/src/async/queue.ts";
import type { HttpHandler } from "../../../packages/server/src/http/handler.ts";
import type { FrameSink, HttpHeaders, HttpRequest, Reply } from "../../../packages/server/src/http/reply.ts";
import type { Chance } from "./chance.ts";

/** One event of an event stream. */
export interface Frame {
  readonly id: string | undefined;
  readonly data: string;
}

/** The client's end of a connection. */
export interface Reader {
  /** A whole answer came. */
  answered(status: number, headers: HttpHeaders, body: string): void;
  framed(frame: Frame): void;
  /** The connection is over; `isWhole` when the server ended it properly. */
  closed(isWhole: boolean): void;
}

/** How long a reader may take nothing; the listeners of real sockets have the same limit. */
const stallMs = 10_000;

/** One request and its answer on a virtual wire. What is in flight when the wire is cut is lost. */
export class Connection implements Reply {
  readonly #reader: Reader;
  readonly #clock: Clock;
  readonly #inFlight: (() => void)[] = [];
  #onHangUp: () => void = () => {};
  #onClosed: () => void = () => {};
  #room: Deferred<void> | undefined;
  #stopStall: (() => void) | undefined;
  #isEnded = false;
  /** The client reads nothing. */
  isStalled = false;
  /** Nothing comes or goes any more. */
  isCut = false;

  constructor(reader: Reader, clock: Clock) {
    this.#reader = reader;
    this.#clock = clock;
  }

  /** Whether the exchange is over for the client. */
  get isOver(): boolean {
    return this.isCut || (this.#isEnded && this.#inFlight.length === 0);
  }

  send(status: number, headers: HttpHeaders, body?: string | readonly Uint8Array[]): void {
    this.#assertFresh();
    this.#isEnded = true;
    const text = typeof body === "string" ? body : Buffer.concat(body ?? []).toString();
    this.#inFlight.push(() => {
      this.#reader.answered(status, headers, text);
      this.#reader.closed(true);
    });
  }

  stream(_status: number, headers: HttpHeaders, onClosed: () => void): FrameSink {
    this.#assertFresh();
    this.#onClosed = onClosed;
    this.#inFlight.push(() => this.#reader.answered(200, headers, ""));
    const isOpen = (): boolean => !this.isCut && !this.#isEnded;
    return {
      get isOpen() {
        return isOpen();
      },
      write: (text) => {
        if (!isOpen()) return;
        const frame = toFrame(text);
        if (frame !== undefined) this.#inFlight.push(() => this.#reader.framed(frame));
        if (!this.isStalled) return;
        this.#stopStall ??= this.#clock.timer(stallMs, () => this.cut());
        return (this.#room ??= createDeferred()).promise;
      },
      end: () => {
        if (!isOpen()) return;
        this.#isEnded = true;
        this.#inFlight.push(() => this.#reader.closed(true));
        this.#letGo();
        this.#onClosed();
      },
      cut: () => this.cut(),
    };
  }

  onHangUp(callback: () => void): void {
    this.#onHangUp = callback;
  }

  /** The wire breaks, or one side lets it go without a word. */
  cut(): void {
    if (this.isCut || this.isOver) return;
    this.isCut = true;
    const wasOpen = !this.#isEnded;
    this.#inFlight.length = 0;
    this.#letGo();
    if (wasOpen) {
      this.#onClosed();
      this.#onHangUp();
    }
    this.#reader.closed(false);
  }

  /** The client reads on, or stops reading. */
  stall(isStalled: boolean): void {
    this.isStalled = isStalled;
    if (!isStalled) this.#letGo();
  }

  /** What is in flight arrives, in order. Gives whether anything did. */
  deliver(): boolean {
    if (this.isStalled || this.#inFlight.length === 0) return false;
    for (const arrive of this.#inFlight.splice(0)) if (!this.isCut) arrive();
    return true;
  }

  #letGo(): void {
    this.#stopStall?.();
    this.#stopStall = undefined;
    this.#room?.resolve();
    this.#room = undefined;
  }

  #assertFresh(): void {
    if (this.#isEnded) throw new Error("one request was answered twice");
  }
}

/** What a client sends. */
export interface VirtualRequest {
  readonly method: "POST" | "GET" | "DELETE";
  readonly headers: { readonly [name: string]: string | undefined };
  readonly body?: string;
}

/** The wires between the clients and one endpoint. */
export class Network {
  readonly #handler: HttpHandler;
  readonly #clock: Clock;
  readonly #open = new Set<Connection>();
  /** Errors of the endpoint that it did not answer with. */
  readonly faults: string[] = [];

  constructor(handler: HttpHandler, clock: Clock) {
    this.#handler = handler;
    this.#clock = clock;
  }

  get open(): readonly Connection[] {
    return [...this.#open];
  }

  send({ method, headers, body }: VirtualRequest, reader: Reader): Connection {
    const connection = new Connection(reader, this.#clock);
    this.#open.add(connection);
    const all: VirtualRequest["headers"] = {
      host: "127.0.0.1:80",
      accept: method === "GET" ? "text/event-stream" : "application/json, text/event-stream",
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...headers,
    };
    const request: HttpRequest = {
      method,
      path: "/mcp",
      query: new URLSearchParams(),
      header: (name) => all[name],
      hostCount: 1,
      localPort: 80,
    };
    void this.#serve(request, connection, body);
    return connection;
  }

  /** Lets what is in flight arrive, on each wire or only on some. */
  deliver(chance: Chance | undefined): boolean {
    let hasMoved = false;
    for (const connection of this.#open) {
      if (chance === undefined || chance.percent(75)) hasMoved = connection.deliver() || hasMoved;
      if (connection.isOver) this.#open.delete(connection);
    }
    return hasMoved;
  }

  async #serve(request: HttpRequest, connection: Connection, body: string | undefined): Promise<void> {
    try {
      const wanted = await this.#handler.handle(request, connection);
      await wanted?.take(Buffer.from(body ?? ""));
    } catch (error) {
      this.faults.push(`serving ${request.method} failed: ${String(error)}`);
    }
  }
}

/** Comments and the frame that opens a stream carry no message. */
function toFrame(text: string): Frame | undefined {
  if (text.startsWith(":")) return undefined;
  const id = /^id: (.*)$/m.exec(text)?.[1];
  const data = /^data: (.*)$/m.exec(text)?.[1] ?? "";
  return { id, data };
}
