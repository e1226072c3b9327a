import { connect, type Socket } from "node:net";

/** A request as it goes on the wire. Headers are pairs, so that one may come twice. */
export interface RawRequest {
  readonly method?: string;
  readonly path?: string;
  /** Left out: the host that was connected to. `null`: no Host at all. */
  readonly host?: string | null;
  readonly headers?: readonly (readonly [name: string, value: string])[];
  readonly body?: string | Uint8Array;
  readonly version?: "1.0" | "1.1";
}

/** One event of an event stream, as its fields stood there. */
export interface RawEvent {
  readonly event?: string;
  readonly id?: string;
  readonly retry?: string;
  readonly data?: string;
}

/** The bytes of a request. */
export function toBytes(request: RawRequest, host: string): Buffer {
  const { method = "POST", path = "/mcp", headers = [], body, version = "1.1" } = request;
  const lines = [`${method} ${path} HTTP/${version}`];
  if (request.host !== null) lines.push(`Host: ${request.host ?? host}`);
  for (const [name, value] of headers) lines.push(`${name}: ${value}`);
  const bytes = body === undefined ? Buffer.alloc(0) : Buffer.from(body);
  const isSized = headers.some(([name]) => /^(content-length|transfer-encoding)$/i.test(name));
  if (body !== undefined && !isSized) lines.push(`Content-Length: ${bytes.length}`);
  return Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`), bytes]);
}

/** What came back for one request, as far as it has come. */
export class RawReply {
  status = 0;
  /** When the system had taken the whole request. */
  sentAt: number = Infinity;
  readonly headers: { [name: string]: string } = {};
  readonly events: RawEvent[] = [];
  /** Comment lines of the event stream. */
  readonly comments: string[] = [];
  /** The body said that it is complete. */
  isComplete = false;
  /** The socket is gone, or says that it is. */
  isClosed = false;
  #pieces: Buffer[] = [];
  #unparsed = "";
  readonly #decoder = new TextDecoder();
  readonly #waiting = new Set<() => void>();

  get isStream(): boolean {
    return this.headers["content-type"]?.startsWith("text/event-stream") === true;
  }

  get body(): string {
    return Buffer.concat(this.#pieces).toString("utf8");
  }

  get json(): unknown {
    return JSON.parse(this.body) as unknown;
  }

  /** Every JSON-RPC message in it, from the stream or from the body. */
  get messages(): readonly Message[] {
    if (this.isStream) {
      const data = this.events.map((event) => event.data).filter((text) => text !== undefined && text !== "");
      return data.map((text) => JSON.parse(text!) as Message);
    }
    if (!this.isComplete || this.body === "") return [];
    return [this.json].flat() as readonly Message[];
  }

  /** Resolves when the condition holds; rejects when the socket closes and it does not. */
  until(what: string, condition: (reply: this) => boolean): Promise<this> {
    return new Promise((resolve, reject) => {
      const check = (): void => {
        const holds = condition(this);
        if (!holds && !this.isClosed) return;
        this.#waiting.delete(check);
        if (holds) resolve(this);
        else reject(new Error(`The socket closed before ${what}: ${this.status} ${this.body.slice(0, 500)}`));
      };
      this.#waiting.add(check);
      check();
    });
  }

  get head(): Promise<this> {
    return this.until("the headers came", ({ status }) => status !== 0);
  }

  get complete(): Promise<this> {
    return this.until("the body was complete", ({ isComplete }) => isComplete);
  }

  get closed(): Promise<this> {
    return this.until("it closed", ({ isClosed }) => isClosed);
  }

  /** Resolves when so many events came. */
  async event(count: number): Promise<RawEvent> {
    await this.until(`event ${count} came`, ({ events }) => events.length >= count);
    return this.events[count - 1]!;
  }

  /** Resolves when so many messages came. */
  async message(count: number): Promise<Message> {
    await this.until(`message ${count} came`, ({ messages }) => messages.length >= count);
    return this.messages[count - 1]!;
  }

  addBody(bytes: Buffer): void {
    if (!this.isStream) return void this.#pieces.push(bytes);
    this.#unparsed += this.#decoder.decode(bytes, { stream: true });
    const blocks = this.#unparsed.split("\n\n");
    this.#unparsed = blocks.pop() ?? "";
    for (const block of blocks) this.#addBlock(block);
  }

  #addBlock(block: string): void {
    const event: { [field: string]: string } = {};
    for (const line of block.split("\n")) {
      if (line.startsWith(":")) this.comments.push(line.slice(1).trim());
      else event[line.slice(0, line.indexOf(":"))] = line.slice(line.indexOf(":") + 1).trimStart();
    }
    if (Object.keys(event).length > 0) this.events.push(event);
  }

  changed(): void {
    for (const check of this.#waiting) check();
  }
}

/** A parsed JSON-RPC message. */
export interface Message {
  readonly jsonrpc: string;
  readonly id?: string | number;
  readonly method?: string;
  readonly params?: { readonly [member: string]: unknown };
  readonly result?: { readonly [member: string]: unknown };
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

/** One socket that speaks HTTP/1.1, byte by byte as it comes. Requests on it go one after the other. */
export class RawSocket implements Disposable {
  readonly socket: Socket;
  readonly host: string;
  #unread: Buffer = Buffer.alloc(0);
  #reply: RawReply | undefined;
  #left: number | "chunked" | "until_close" = 0;
  #isHead = false;

  constructor(port: number, host = "127.0.0.1") {
    this.host = `${host.includes(":") ? `[${host}]` : host}:${port}`;
    this.socket = connect(port, host);
    this.socket.setNoDelay(true);
    this.socket.on("data", (bytes: Buffer) => this.#read(bytes));
    this.socket.on("error", () => {}); // It closes then, which is what counts.
    this.socket.on("close", () => this.#close());
  }

  /** Sends a request and gives back its reply, which has not come yet. */
  send(request: RawRequest | Uint8Array): RawReply {
    const reply = new RawReply();
    this.#reply = reply;
    this.#isHead = "method" in request && request.method === "HEAD";
    const bytes = request instanceof Uint8Array ? request : toBytes(request, this.host);
    this.socket.write(bytes, () => (reply.sentAt = performance.now()));
    if (this.socket.destroyed) this.#close();
    return reply;
  }

  /** Cuts the connection as a crash or a pulled cable would. */
  cut(): void {
    this.socket.resetAndDestroy();
  }

  [Symbol.dispose](): void {
    this.socket.destroy();
  }

  #close(): void {
    const reply = this.#reply;
    if (reply === undefined) return;
    reply.isClosed = true;
    if (this.#left === "until_close") reply.isComplete = true;
    reply.changed();
  }

  #read(bytes: Buffer): void {
    this.#unread = this.#unread.length === 0 ? bytes : Buffer.concat([this.#unread, bytes]);
    const reply = this.#reply;
    if (reply === undefined) return;
    if (reply.status === 0 && !this.#readHead(reply)) return;
    this.#readBody(reply);
    reply.changed();
  }

  #readHead(reply: RawReply): boolean {
    const end = this.#unread.indexOf("\r\n\r\n");
    if (end === -1) return false;
    const [first = "", ...lines] = this.#unread.subarray(0, end).toString("latin1").split("\r\n");
    this.#unread = this.#unread.subarray(end + 4);
    const status = Number(first.split(" ")[1]);
    if (status < 200) return this.#readHead(reply);
    reply.status = status;
    for (const line of lines) {
      const colon = line.indexOf(":");
      reply.headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim();
    }
    const length = reply.headers["content-length"];
    if (this.#isHead) this.#left = 0;
    else if (reply.headers["transfer-encoding"] === "chunked") this.#left = "chunked";
    else if (length === undefined) this.#left = status === 204 || status === 304 ? 0 : "until_close";
    else this.#left = Number(length);
    return true;
  }

  #readBody(reply: RawReply): void {
    if (this.#left === "chunked") return this.#readChunks(reply);
    const length = this.#left === "until_close" ? this.#unread.length : this.#left;
    const piece = this.#unread.subarray(0, length);
    this.#unread = this.#unread.subarray(piece.length);
    if (piece.length > 0) reply.addBody(piece);
    if (this.#left === "until_close") return;
    this.#left -= piece.length;
    if (this.#left === 0) reply.isComplete = true;
  }

  #readChunks(reply: RawReply): void {
    for (;;) {
      const end = this.#unread.indexOf("\r\n");
      if (end === -1) return;
      const size = Number.parseInt(this.#unread.subarray(0, end).toString("latin1"), 16);
      if (this.#unread.length < end + 2 + size + 2) return;
      if (size > 0) reply.addBody(this.#unread.subarray(end + 2, end + 2 + size));
      this.#unread = this.#unread.subarray(end + 2 + size + 2);
      if (size === 0) {
        reply.isComplete = true;
        return;
      }
    }
  }
}

/** Sends one request on a socket of its own and resolves with the whole reply. */
export async function exchange(port: number, request: RawRequest | Uint8Array): Promise<RawReply> {
  using socket = new RawSocket(port);
  return await socket.send(request).complete;
}
