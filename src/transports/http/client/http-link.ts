import { waitFor } from "../../../async/clock.ts";
import { LazyAbort } from "../../../async/lazy-abort.ts";
import type { ClosedError } from "../../../errors/closed-error.ts";
import { RpcError } from "../../../errors/rpc-error.ts";
import { RawJson } from "../../../json/raw.ts";
import { toErrorBody } from "../../../jsonrpc/error-body.ts";
import {
  type Notification,
  type Request,
  type RequestId,
  type Response,
  encodeMessage,
  toRequestId,
} from "../../../jsonrpc/message.ts";
import type { Link, LinkEvents, LinkMode, LinkRequest } from "../../../mcp/link.ts";
import { encodeHeaderValue, namedBy } from "../../../mcp/mirrored-headers.ts";
import { sessionHeader } from "../../../mcp/session.ts";
import { WholeReply, httpErrorOf } from "./exchange.ts";
import { type HeaderPairs, type HttpLinkOptions, HttpWay } from "./http-way.ts";
import { ReplyReader, type TakeMessage } from "./reply-reader.ts";
import { awaitAnswer, listenForAnnouncements } from "./resume.ts";

/** How long the farewell to a legacy server may take. */
const farewellMs = 1000;

/** A link over Streamable HTTP, of either era. */
export class HttpLink implements Link {
  readonly target: string;
  /** Never: every request stands alone, and the next one may succeed. */
  readonly closed: Promise<ClosedError> = new Promise(() => {});
  readonly #way: HttpWay;
  readonly #options: HttpLinkOptions;
  readonly #maxBytes: number;
  readonly #closing = new AbortController();
  readonly #take: TakeMessage;
  /** What a legacy server asked and we have not answered. */
  readonly #asked = new Map<RequestId, AbortController>();
  /** Answers, cancellations and the like that have not arrived yet. */
  readonly #delivering = new Set<Promise<void>>();
  #nextId = 1;
  #closed: Promise<void> | undefined;

  constructor(url: URL, options: HttpLinkOptions) {
    this.#way = new HttpWay(url, options);
    this.target = this.#way.target;
    this.#options = options;
    this.#maxBytes = options.maxResponseBytes ?? 64 * 1024 * 1024;
    this.#take = this.#takeFor(options.events);
  }

  use(mode: LinkMode): void {
    this.#way.mode = mode;
  }

  async request(request: LinkRequest): Promise<RawJson> {
    const { method, params, events, onSent, stop } = request;
    if (stop.isAborted) throw stop.reason;
    const id = toRequestId(request.id ?? this.#nextId++);
    /** What the server asks on this request's stream is of no interest once that has ended. */
    let asked: Set<AbortController> | undefined;
    let takeOwn: TakeMessage | undefined;
    // Most requests are answered without another word.
    const take: TakeMessage = (message) => {
      takeOwn ??= this.#takeFor(events?.() ?? {}, (asked = new Set()));
      takeOwn(message);
    };
    const onAbort = (): void => this.#cancel(id, method);
    stop.onAbort(onAbort);
    try {
      const body = encodeMessage({ kind: "request", id, method, params });
      const reader = new ReplyReader(id, this.#maxBytes, take);
      const posted = this.#way.post(body, reader, { stop, onSent, headers: this.#mirror(request) });
      const answer = await awaitAnswer(this.#way, posted, reader, id, stop);
      if (answer.kind === "result") {
        if (method === "initialize") this.#way.session = headerOf(reader, sessionHeader);
        return answer.result;
      }
      const { code, message, data } = answer.error;
      const cause =
        reader.status === 200 ? undefined : httpErrorOf(reader.status, this.#way.url, reader.body);
      throw new RpcError("rpc.other", message, { rpcCode: code, data: data?.value, cause });
    } finally {
      stop.offAbort(onAbort);
      for (const asking of asked ?? []) asking.abort(new DOMException("The request is over", "AbortError"));
    }
  }

  async notify(method: string, params: RawJson | undefined): Promise<void> {
    const headers = this.#way.mode.kind === "modern" ? ["mcp-method", method] : [];
    await this.#deliver(encodeMessage({ kind: "notification", method, params }), headers);
  }

  async listen(onOpen: (mayHaveMissed: boolean) => void): Promise<void> {
    const { onWarning } = this.#options;
    const { signal } = this.#closing;
    await listenForAnnouncements(this.#way, {
      take: this.#take,
      maxBytes: this.#maxBytes,
      signal,
      onOpen,
      onWarning,
    });
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    // What is on its way, such as the news that nobody will answer, is let arrive.
    await waitFor(Promise.allSettled(this.#delivering), { ms: farewellMs, clock: this.#way.clock });
    this.#closing.abort();
    for (const asking of this.#asked.values()) asking.abort();
    this.#way.close();
    if (this.#way.session !== undefined && !this.#way.isSessionOver) {
      // A courtesy; many servers do not offer it, and a server that is gone needs none.
      const giveUp = new LazyAbort();
      const stop = this.#way.clock.timer(farewellMs, () => giveUp.abort(undefined));
      await this.#way.delete(new WholeReply(64 * 1024), { stop: giveUp }).catch(() => {});
      stop();
    }
    await this.#way[Symbol.asyncDispose]();
  }

  /** Sends what is never answered. */
  #deliver(body: RawJson, headers: HeaderPairs): Promise<void> {
    const delivered: Promise<void> = this.#send(body, headers).finally(() =>
      this.#delivering.delete(delivered),
    );
    this.#delivering.add(delivered);
    return delivered;
  }

  async #send(body: RawJson, headers: HeaderPairs): Promise<void> {
    const reply = new WholeReply(64 * 1024);
    await this.#way.post(body, reply, { headers, isExpress: true });
    if (reply.status >= 300) throw httpErrorOf(reply.status, this.#way.url, reply.body);
  }

  /** A modern request says in its headers what it is about, so that those on the way need not read the body. */
  #mirror({ method, params, about, mirrored }: LinkRequest): HeaderPairs {
    if (this.#way.mode.kind !== "modern") return noHeaders;
    const pairs = ["mcp-method", method];
    const member = namedBy[method];
    const name = about ?? (member === undefined ? undefined : params?.at(member)?.value);
    if (typeof name === "string") pairs.push("mcp-name", encodeHeaderValue(name));
    for (const header in mirrored) pairs.push(header, mirrored[header] as string);
    return pairs;
  }

  #takeFor(given: Partial<LinkEvents>, asked: Set<AbortController> = new Set()): TakeMessage {
    const events = { ...this.#options.events, ...given };
    return (message) => {
      switch (message.kind) {
        case "notification":
          if (message.method === "notifications/cancelled") this.#giveUp(message);
          return events.notified(message);
        case "request":
          // Modern servers may not ask; whatever they want, they get no answer.
          if (this.#way.mode.kind === "legacy") void this.#answer(message, events, asked);
          return;
        case "invalid":
          return this.#warn(`${this.target} sent something that is no message: ${message.error.message}`);
      }
    };
  }

  async #answer(request: Request, events: LinkEvents, asked: Set<AbortController>): Promise<void> {
    const { id } = request;
    const { signal } = this.#closing;
    const asking = new AbortController();
    this.#asked.set(id, asking);
    asked.add(asking);
    const response = await events.asked(request, asking.signal).then(
      (result): Response => ({ kind: "result", id, result }),
      (error: unknown): Response => ({ kind: "error", id, error: toErrorBody(toRpcError(error)) }),
    );
    this.#asked.delete(id);
    asked.delete(asking);
    if (asking.signal.aborted) return;
    try {
      await this.#deliver(encodeMessage(response), []);
    } catch (error) {
      if (!signal.aborted) this.#warn(`An answer could not be delivered: ${String(error)}`);
    }
  }

  /** A server that no longer wants an answer gets none. */
  #giveUp({ params }: Notification): void {
    const id = params?.at("requestId")?.text as RequestId | undefined;
    if (id !== undefined)
      this.#asked.get(id)?.abort(new DOMException("The server cancelled it", "AbortError"));
  }

  /** A modern request is cancelled by closing its stream, which aborting has done. A legacy one must be told. */
  #cancel(id: RequestId, method: string): void {
    if (this.#way.mode.kind === "modern" || method === "initialize" || method === "server/discover") return;
    const params = RawJson.fromText(`{"requestId":${id}}`);
    this.notify("notifications/cancelled", params).catch(() => {}); // The server is gone, or forgot us: nothing to cancel.
  }

  #warn(text: string): void {
    this.#options.onWarning?.(text);
  }
}

const noHeaders: HeaderPairs = [];

function toRpcError(error: unknown): RpcError {
  return error instanceof RpcError ? error : new RpcError("rpc.internal", "Internal error", { cause: error });
}

function headerOf(reader: ReplyReader, name: string): string | undefined {
  const value = reader.headers[name];
  return typeof value === "string" ? value : undefined;
}
