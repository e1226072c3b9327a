import { Buffer } from "node:buffer";
import { Agent, type Dispatcher } from "undici";
import { type Clock, settlesWithin } from "../../async/clock.ts";
import { ClosedError } from "../../errors/closed-error.ts";
import { ConnectError } from "../../errors/connect-error.ts";
import type { Channel, Incoming } from "../../jsonrpc/channel.ts";
import { encodeMessage } from "../../jsonrpc/message.ts";
import { parseMessage } from "../../jsonrpc/parse.ts";
import { messageShape } from "../../mcp/shape.ts";
import type { HeaderSource } from "./client-link.ts";
import { mediaTypeOf, sendHttp, toHttpError } from "./client-request.ts";
import { readSse, type SseEvent } from "./sse-reader.ts";

export interface HttpSseOptions {
  readonly headers?: HeaderSource | undefined;
  readonly clock: Clock;
  /** How long the server may take to name its endpoint. */
  readonly timeoutMs: number;
  readonly maxEventBytes?: number | undefined;
}

/**
 * Connects to a server of 2024-11-05: a stream that brings everything, and a URL, named in its first event, that takes
 * everything. Rejects when the first event is something else, which is how it is told from other servers.
 */
export async function connectHttpSse(url: URL, options: HttpSseOptions): Promise<Channel> {
  const dispatcher: Dispatcher = new Agent({ connections: 16 });
  const closing = new AbortController();
  const target = `${url.origin}${url.pathname}`;
  const toHeaders = async (extra: Record<string, string>): Promise<Record<string, string>> => {
    const { headers } = options;
    return { ...(typeof headers === "function" ? await headers() : headers), ...extra };
  };
  const open = async (): Promise<{ endpoint: URL; events: AsyncGenerator<SseEvent> }> => {
    const headers = await toHeaders({ accept: "text/event-stream" });
    const response = await sendHttp(dispatcher, url, { method: "GET", headers, signal: closing.signal });
    if (response.statusCode !== 200 || mediaTypeOf(response) !== "text/event-stream")
      throw await toHttpError(response, url);
    const events = readSse(
      response.body as AsyncIterable<Uint8Array>,
      options.maxEventBytes ?? 64 * 1024 * 1024,
    );
    const { value: first } = await events.next();
    if (first?.event !== "endpoint")
      throw new ConnectError(target, "the stream does not begin with an endpoint");
    const endpoint = new URL(first.data, url);
    // Credentials go to the origin they were meant for and nowhere else.
    if (endpoint.origin !== url.origin)
      throw new ConnectError(target, `it names an endpoint elsewhere, ${endpoint.origin}`);
    return { endpoint, events };
  };
  const opening = open();
  if (!(await settlesWithin(opening, options.timeoutMs, options.clock))) closing.abort();
  const { endpoint, events } = await opening.catch(async (error: unknown) => {
    await dispatcher.destroy();
    throw error;
  });
  return {
    send: async (message) => {
      const { text } = encodeMessage(message);
      const headers = await toHeaders({ "content-type": "application/json" });
      const response = await sendHttp(dispatcher, endpoint, {
        method: "POST",
        headers,
        body: text,
        signal: closing.signal,
      });
      if (response.statusCode >= 300) throw await toHttpError(response, endpoint);
      await response.body.dump();
    },
    [Symbol.asyncIterator]: () => receive(events, closing.signal),
    [Symbol.asyncDispose]: async () => {
      closing.abort(new ClosedError("outcome_unknown", "the client was closed"));
      await dispatcher.destroy();
    },
  };
}

async function* receive(events: AsyncGenerator<SseEvent>, signal: AbortSignal): AsyncGenerator<Incoming> {
  try {
    for await (const { event, data } of events) {
      const isMessage = (event === undefined || event === "message") && data !== "";
      if (isMessage) yield parseMessage(Buffer.from(data), { shape: messageShape });
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}
