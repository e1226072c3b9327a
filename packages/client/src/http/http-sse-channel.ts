import { type Clock, createDeferred, LazyAbort, BoundedQueue } from "@junctor/core/async";
import { ClosedError, ConnectError, SessionExpiredError } from "@junctor/core/errors";
import { messageShape } from "@junctor/core/mcp";
import { type Channel, type Incoming, encodeMessage, parseMessage } from "@junctor/core/rpc";
import { Agent, type Dispatcher } from "undici/index.js";
import type { Authorizer } from "../sign-in/index.ts";
import { sendAuthorized, type HeaderSource } from "./endpoint.ts";
import {
  exchange,
  type OutgoingRequest,
  type ReplySink,
  httpErrorOf,
  mediaTypeOf,
  toTarget,
  WholeReply,
} from "./exchange.ts";
import { SseReader } from "./reply-reader.ts";

interface HttpSseOptions {
  readonly headers?: HeaderSource | undefined;
  /** Gives requests their token. */
  readonly authorizer?: Authorizer | undefined;
  readonly clock: Clock;
  /** How long the server may take to name its endpoint. */
  readonly timeoutMs: number;
  readonly maxEventBytes?: number | undefined;
}

/** How many chunks of messages are read ahead; beyond that the server has to wait. */
const maxAhead = 4;

/**
 * Connects to a server of 2024-11-05: it sends everything on one stream, and takes everything at the URL that the first event
 * names. Rejects if the first event is something else: then it is another server.
 */
export async function connectHttpSse(url: URL, options: HttpSseOptions): Promise<Channel> {
  const { clock, timeoutMs, authorizer } = options;
  const dispatcher: Dispatcher = new Agent({ connections: 16 });
  const target = `${url.origin}${url.pathname}`;
  const closing = new LazyAbort();
  const createHeaders = async (...own: readonly string[]): Promise<string[]> => {
    const { headers = {} } = options;
    return [...Object.entries(typeof headers === "function" ? await headers() : headers).flat(), ...own];
  };

  const send = (request: OutgoingRequest, sink: ReplySink): Promise<void> => {
    if (authorizer === undefined) return exchange(dispatcher, request, sink, { clock });
    const once = (token: readonly string[], reply: ReplySink): Promise<void> =>
      exchange(dispatcher, { ...request, headers: [...request.headers, ...token] }, reply, { clock });
    return sendAuthorized({ authorizer, send: once, sink, stop: request.stop });
  };

  const stop = clock.timer(timeoutMs, () =>
    closing.abort(
      new ConnectError(target, `it named no endpoint within ${timeoutMs} ms`, { kind: "no_answer" }),
    ),
  );
  const stream = new EndpointStream(url, options.maxEventBytes ?? 64 * 1024 * 1024);
  try {
    const headers = await createHeaders("accept", "text/event-stream");
    const ended = send({ to: toTarget(url), method: "GET", headers, stop: closing }, stream);
    ended.then(
      () => stream.ended(),
      (error: unknown) => stream.ended(error),
    );
    await stream.endpoint;
  } catch (error) {
    await dispatcher.destroy();
    throw error;
  } finally {
    stop();
  }
  const endpoint = await stream.endpoint;
  const to = toTarget(endpoint);
  return {
    send: async (message) => {
      const { text: body } = encodeMessage(message);
      const headers = await createHeaders("content-type", "application/json");
      const reply = new WholeReply(64 * 1024);
      await send({ to, method: "POST", headers, body }, reply);
      if (reply.status === 404) throw new SessionExpiredError();
      if (reply.status >= 300) throw httpErrorOf(reply.status, endpoint, reply.body);
    },
    [Symbol.asyncIterator]: () => stream.messages[Symbol.asyncIterator](),
    [Symbol.asyncDispose]: async () => {
      closing.abort(new ClosedError("outcome_unknown", "the client was closed"));
      stream.messages.close();
      await dispatcher.destroy();
    },
  };
}

/** The stream on which the server sends everything; its first event names the endpoint. */
class EndpointStream implements ReplySink {
  readonly messages: BoundedQueue<readonly Incoming[]> = new BoundedQueue(maxAhead);
  readonly #url: URL;
  readonly #endpoint = createDeferred<URL>();
  readonly #events: SseReader;
  readonly #refusal = new WholeReply(64 * 1024);
  #isStream = false;
  #isNamed = false;

  constructor(url: URL, maxEventBytes: number) {
    this.#url = url;
    this.#events = new SseReader(maxEventBytes);
    this.#endpoint.promise.catch(() => {}); // `connectHttpSse` reports it.
  }

  get endpoint(): Promise<URL> {
    return this.#endpoint.promise;
  }

  head(...[status, headers]: Parameters<ReplySink["head"]>): void {
    this.#isStream = status === 200 && mediaTypeOf(headers) === "text/event-stream";
    this.#refusal.head(status, headers);
  }

  chunk(bytes: Uint8Array): boolean | Promise<void> {
    if (!this.#isStream) return this.#refusal.chunk(bytes);
    const messages: Incoming[] = [];
    for (const { event, data } of this.#events.read(bytes)) {
      if (!this.#isNamed) this.#name(event, new TextDecoder().decode(data));
      else if ((event === undefined || event === "message") && data.length > 0)
        messages.push(parseMessage(data, { shape: messageShape }));
    }
    const taken = messages.length > 0 ? this.messages.push(messages) : undefined;
    return taken !== undefined && this.messages.isFull ? taken : false;
  }

  ended(error?: unknown): void {
    const { status, body } = this.#refusal;
    const refused = this.#isStream
      ? new ConnectError(this.#url.href, "the stream ended before it named an endpoint")
      : httpErrorOf(status, this.#url, body);
    this.#endpoint.reject(error ?? refused);
    this.messages.close();
  }

  #name(event: string | undefined, data: string): void {
    const { origin, href } = this.#url;
    if (event !== "endpoint") throw new ConnectError(href, "the stream does not begin with an endpoint");
    const endpoint = new URL(data, this.#url);
    // Credentials are only for the origin that the user named.
    if (endpoint.origin !== origin)
      throw new ConnectError(href, `it names an endpoint elsewhere, ${endpoint.origin}`);
    this.#isNamed = true;
    this.#endpoint.resolve(endpoint);
  }
}
