import { Buffer } from "node:buffer";
import { Agent, type Dispatcher } from "undici";
import { createBackoff } from "../../async/backoff.ts";
import { type Clock, sleep, systemClock } from "../../async/clock.ts";
import { ClosedError } from "../../errors/closed-error.ts";
import { RpcError } from "../../errors/rpc-error.ts";
import { SessionExpiredError } from "../../errors/session-expired-error.ts";
import { RawJson } from "../../json/raw.ts";
import { toErrorBody } from "../../jsonrpc/error-body.ts";
import {
  encodeMessage,
  type Request,
  type RequestId,
  type Response,
  toRequestId,
} from "../../jsonrpc/message.ts";
import { parseMessage } from "../../jsonrpc/parse.ts";
import { namedBy } from "../../mcp/era.ts";
import { encodeHeaderValue } from "../../mcp/header-value.ts";
import type { Link, LinkEvents, LinkMode, LinkRequest } from "../../mcp/link.ts";
import { messageShape } from "../../mcp/shape.ts";
import {
  httpErrorOf,
  type HttpResponse,
  mediaTypeOf,
  readAll,
  sendHttp,
  toClosed,
  toHttpError,
} from "./client-request.ts";
import { sessionHeader } from "./legacy-call.ts";
import { readSse } from "./sse-reader.ts";

/** Headers to send with every request; a function is asked each time, so that tokens can be renewed. */
export type HeaderSource =
  | { readonly [name: string]: string }
  | (() => Promise<{ readonly [name: string]: string }>);

export interface HttpLinkOptions {
  readonly events: LinkEvents;
  readonly headers?: HeaderSource | undefined;
  /** Most bytes of one answer or event. */
  readonly maxResponseBytes?: number | undefined;
  readonly dispatcher?: Dispatcher | undefined;
  readonly clock?: Clock | undefined;
  readonly onWarning?: ((text: string) => void) | undefined;
}

/** How often a broken legacy stream is resumed without a new event in between. */
const maxResumes = 5;

/** A link over Streamable HTTP, of either era. */
export class HttpLink implements Link {
  readonly target: string;
  /** Never: every request stands alone, and the next one may succeed. */
  readonly closed: Promise<ClosedError> = new Promise(() => {});
  readonly #url: URL;
  readonly #options: HttpLinkOptions;
  readonly #dispatcher: Dispatcher;
  readonly #clock: Clock;
  readonly #maxBytes: number;
  readonly #closing = new AbortController();
  #mode: LinkMode = { kind: "legacy", revision: undefined };
  #session: string | undefined;
  #nextId = 1;

  constructor(url: URL, options: HttpLinkOptions) {
    this.#url = url;
    this.target = `${url.origin}${url.pathname}`;
    this.#options = options;
    this.#dispatcher = options.dispatcher ?? new Agent({ connections: 128, pipelining: 1 });
    this.#clock = options.clock ?? systemClock;
    this.#maxBytes = options.maxResponseBytes ?? 64 * 1024 * 1024;
  }

  use(mode: LinkMode): void {
    this.#mode = mode;
    if (mode.kind === "modern") this.#session = undefined;
  }

  /** Forgets the session, so that the next `initialize` begins another. */
  forgetSession(): void {
    this.#session = undefined;
  }

  async request(request: LinkRequest): Promise<RawJson> {
    const { method, params, signal } = request;
    const id = toRequestId(request.id ?? this.#nextId++);
    const onAbort = (): void => this.#cancel(id, method);
    signal.throwIfAborted();
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      const body = encodeMessage({ kind: "request", id, method, params });
      const response = await this.#post(body, signal, this.#mirror(request));
      if (method === "initialize") this.#session = headerOf(response, sessionHeader);
      const answer = await this.#readAnswer(response, id, request);
      if (answer.kind === "result") return answer.result;
      const { code, message, data } = answer.error;
      throw new RpcError("rpc.other", message, { rpcCode: code, data: data?.value });
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }

  async notify(method: string, params: RawJson | undefined): Promise<void> {
    const headers = this.#mode.kind === "modern" ? { "mcp-method": method } : {};
    const response = await this.#post(
      encodeMessage({ kind: "notification", method, params }),
      this.#closing.signal,
      headers,
    );
    if (response.statusCode >= 400) throw await toHttpError(response, this.#url);
    await response.body.dump();
  }

  /**
   * Keeps a legacy server's stream of announcements open until the link is disposed, or forever refused. `onGap` is
   * called when something may have been missed.
   */
  async listen(onGap: () => void): Promise<void> {
    const { signal } = this.#closing;
    const backoff = createBackoff();
    let lastEventId: string | undefined;
    let isFirst = true;
    while (!signal.aborted) {
      try {
        const session = this.#session;
        const response = await this.#get(lastEventId, signal);
        if (response.statusCode !== 200 || mediaTypeOf(response) !== "text/event-stream") {
          await response.body.dump();
          if (response.statusCode < 500) return; // Not offered (405), or the session is over.
        } else {
          if (!isFirst && lastEventId === undefined) onGap();
          isFirst = false;
          const openedAt = this.#clock.now();
          for await (const event of readSse(response.body as AsyncIterable<Uint8Array>, this.#maxBytes)) {
            lastEventId = event.id ?? lastEventId;
            if (event.data !== "") this.#take(event.data, this.#options.events);
          }
          if (this.#clock.now() - openedAt > 5000) backoff.reset();
        }
        if (session !== this.#session) return;
      } catch (error) {
        if (!signal.aborted) this.#options.onWarning?.(`The stream of announcements broke: ${String(error)}`);
      }
      await sleep(backoff.next(), this.#clock, signal).catch(() => {});
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#closing.signal.aborted) return;
    const session = this.#session;
    this.#closing.abort(new ClosedError("outcome_unknown", "the client was closed"));
    if (session !== undefined) {
      // A courtesy; many servers do not offer it, and a server that is gone needs none.
      await sendHttp(this.#dispatcher, this.#url, {
        method: "DELETE",
        headers: await this.#headers({ [sessionHeader]: session }),
        signal: AbortSignal.timeout(1000),
      }).then(
        (response) => response.body.dump(),
        () => {},
      );
    }
    if (this.#options.dispatcher === undefined) await this.#dispatcher.destroy();
  }

  async #headers(extra: { readonly [name: string]: string }): Promise<Record<string, string>> {
    const { headers } = this.#options;
    const own = typeof headers === "function" ? await headers() : (headers ?? {});
    const { revision } = this.#mode;
    return {
      ...own,
      ...(revision === undefined ? {} : { "mcp-protocol-version": revision }),
      ...(this.#session === undefined ? {} : { [sessionHeader]: this.#session }),
      ...extra,
    };
  }

  /** A modern request says in its headers what it is about, so that those on the way need not read the body. */
  #mirror({ method, params, mirrored }: LinkRequest): Record<string, string> {
    if (this.#mode.kind !== "modern") return {};
    const member = namedBy[method];
    const name = member === undefined ? undefined : params?.at(member)?.value;
    return {
      ...mirrored,
      "mcp-method": method,
      ...(typeof name === "string" ? { "mcp-name": encodeHeaderValue(name) } : {}),
    };
  }

  async #post(
    body: RawJson,
    signal: AbortSignal,
    extra: { readonly [name: string]: string },
  ): Promise<HttpResponse> {
    const headers = await this.#headers({
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      ...extra,
    });
    const bytes = body.isBytesOnly ? body.bytes : body.text;
    return sendHttp(this.#dispatcher, this.#url, { method: "POST", headers, body: bytes, signal });
  }

  async #get(lastEventId: string | undefined, signal: AbortSignal): Promise<HttpResponse> {
    const resumption = lastEventId === undefined ? {} : { "last-event-id": lastEventId };
    const headers = await this.#headers({ accept: "text/event-stream", ...resumption });
    return sendHttp(this.#dispatcher, this.#url, { method: "GET", headers, signal });
  }

  async #readAnswer(response: HttpResponse, id: RequestId, request: LinkRequest): Promise<Response> {
    if (response.statusCode === 200 && mediaTypeOf(response) === "text/event-stream") {
      return this.#readStream(response, id, request);
    }
    let body: Uint8Array;
    try {
      body = await readAll(response, this.#maxBytes);
    } catch (error) {
      request.signal.throwIfAborted();
      throw error instanceof RpcError ? error : toClosed(error, this.#url);
    }
    const message = parseMessage(body, { shape: messageShape });
    const isAnswer = message.kind === "result" || message.kind === "error";
    if (isAnswer && (message.id === id || (message.kind === "error" && message.id === undefined))) {
      if (response.statusCode === 404 && this.#session !== undefined) throw new SessionExpiredError();
      return message;
    }
    if (response.statusCode === 404 && this.#session !== undefined) throw new SessionExpiredError();
    if (response.statusCode < 300) {
      throw new RpcError(
        "rpc.other",
        `${this.target} answered ${response.statusCode} with something that is no answer to the request`,
      );
    }
    throw httpErrorOf(response.statusCode, this.#url, body);
  }

  /** Reads a call's stream up to its answer, over as many connections as that takes where the server keeps events. */
  async #readStream(first: HttpResponse, id: RequestId, request: LinkRequest): Promise<Response> {
    const { signal, events = this.#options.events } = request;
    let response = first;
    let lastEventId: string | undefined;
    let retryMs = 1000;
    for (let resumes = 0; resumes <= maxResumes; resumes++) {
      try {
        for await (const event of readSse(response.body as AsyncIterable<Uint8Array>, this.#maxBytes)) {
          lastEventId = event.id ?? lastEventId;
          retryMs = event.retryMs ?? retryMs;
          if (event.data === "") continue;
          resumes = 0;
          const answer = this.#take(event.data, events);
          if (answer?.id === id) return answer;
        }
      } catch (error) {
        signal.throwIfAborted();
        if (error instanceof RpcError) throw error;
      }
      if (lastEventId === undefined || this.#mode.kind === "modern") break;
      await sleep(retryMs, this.#clock, signal);
      response = await this.#get(lastEventId, signal);
      if (response.statusCode !== 200) throw await toHttpError(response, this.#url);
    }
    throw new ClosedError("outcome_unknown", `${this.target} ended the stream before the answer`);
  }

  /** Passes on what is not an answer. */
  #take(data: string, events: LinkEvents): Response | undefined {
    const message = parseMessage(Buffer.from(data), { shape: messageShape });
    switch (message.kind) {
      case "result":
      case "error":
        return message;
      case "notification":
        events.notified(message);
        return undefined;
      case "request":
        if (this.#mode.kind === "legacy") void this.#answer(message, events);
        return undefined;
      case "invalid":
        this.#options.onWarning?.(
          `${this.target} sent something that is no message: ${message.error.message}`,
        );
        return undefined;
      case "batch":
        return undefined;
    }
  }

  async #answer(request: Request, events: LinkEvents): Promise<void> {
    const { id } = request;
    const { signal } = this.#closing;
    const response = await events.asked(request, signal).then(
      (result): Response => ({ kind: "result", id, result }),
      (error: unknown): Response => ({
        kind: "error",
        id,
        error: toErrorBody(
          error instanceof RpcError
            ? error
            : new RpcError("rpc.internal", "Internal error", { cause: error }),
        ),
      }),
    );
    try {
      const posted = await this.#post(encodeMessage(response), signal, {});
      await posted.body.dump();
    } catch (error) {
      if (!signal.aborted) this.#options.onWarning?.(`An answer could not be delivered: ${String(error)}`);
    }
  }

  /** A modern request is cancelled by closing its stream, which aborting has done. A legacy one must be told. */
  #cancel(id: RequestId, method: string): void {
    if (this.#mode.kind === "modern" || method === "initialize" || method === "server/discover") return;
    const params = RawJson.fromText(`{"requestId":${id}}`);
    this.notify("notifications/cancelled", params).catch(() => {}); // The server is gone, or forgot us: nothing to cancel.
  }
}

function headerOf(response: HttpResponse, name: string): string | undefined {
  const value = response.headers[name];
  return typeof value === "string" ? value : undefined;
}
