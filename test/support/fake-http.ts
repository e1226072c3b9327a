import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { Reaction } from "./fake-pipe.ts";
import type { Message } from "./raw-http.ts";

/** One HTTP request, as a fake server heard it. */
export interface HeardRequest {
  readonly verb: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly message: Message | undefined;
}

/** What a fake server answers with: a response, or nothing because the test writes it itself. */
export type FakeReply =
  | {
      readonly status?: number;
      readonly headers?: { readonly [name: string]: string };
      readonly body?: unknown;
    }
  | undefined;

type React = (request: HeardRequest, response: ServerResponse) => FakeReply | Promise<FakeReply>;

/** An HTTP server that does what its test says, and remembers what it heard. */
export class FakeHttp implements AsyncDisposable {
  readonly heard: HeardRequest[] = [];
  /** Connections accepted so far. */
  connects = 0;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(react: React) {
    this.#server = createServer((request, response) => void this.#serve(react, request, response));
    this.#server.on("connection", (socket) => {
      this.connects++;
      this.#sockets.add(socket);
      socket.on("close", () => this.#sockets.delete(socket));
    });
  }

  static async listen(react: React): Promise<FakeHttp> {
    const fake = new FakeHttp(react);
    await new Promise<void>((resolve) => fake.#server.listen(0, "127.0.0.1", resolve));
    return fake;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}/mcp`;
  }

  get open(): number {
    return this.#sockets.size;
  }

  /** The requests that carried this method. */
  calls(method: string): readonly HeardRequest[] {
    return this.heard.filter(({ message }) => message?.method === method);
  }

  get methods(): readonly (string | undefined)[] {
    return this.heard.filter(({ verb }) => verb === "POST").map(({ message }) => message?.method);
  }

  async #serve(react: React, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Uint8Array[] = [];
    for await (const chunk of request) chunks.push(chunk as Uint8Array);
    const body = Buffer.concat(chunks).toString("utf8");
    const { method: verb = "", url: path = "", headers } = request;
    const message = body === "" ? undefined : (JSON.parse(body) as Message);
    const heard = { verb, path, headers, message };
    this.heard.push(heard);
    const reply = await react(heard, response);
    if (reply === undefined) return;
    const { status = 200, headers: own = {}, body: said } = reply;
    const isText = typeof said === "string" || said === undefined;
    response.writeHead(status, { "content-type": isText ? "text/plain" : "application/json", ...own });
    response.end(isText ? said : JSON.stringify(said));
  }

  /** Cuts every connection. */
  cut(): void {
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

/** Puts what a script says into a response: 202 for what has no answer, 404 for methods a modern server lacks. */
export function toReply({ message }: HeardRequest, reaction: Reaction): FakeReply {
  if (message?.id === undefined || reaction === undefined) return { status: 202 };
  return { body: { jsonrpc: "2.0", id: message.id, ...reaction } };
}

/** Writes events to a response. */
export function startSse(
  response: ServerResponse,
): (event: { id?: string; retry?: number; data?: unknown }) => void {
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.flushHeaders();
  return ({ id, retry, data }) => {
    const lines = [
      ...(id === undefined ? [] : [`id: ${id}`]),
      ...(retry === undefined ? [] : [`retry: ${retry}`]),
      `data: ${data === undefined ? "" : JSON.stringify(data)}`,
    ];
    response.write(`${lines.join("\n")}\n\n`);
  };
}
