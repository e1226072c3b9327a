import { randomBytes } from "node:crypto";
import { type Awaitable, recover } from "../../../async/awaitable.ts";
import { encodeMessage, type Message, type Response } from "../../../jsonrpc/message.ts";
import { isAtLeast } from "../../../mcp/revision.ts";
import type { Accepted } from "../media-type.ts";
import type { Endpoint } from "../server/endpoint.ts";
import type { Reply } from "../server/reply.ts";
import { sendJson, toData } from "../server/send-json.ts";
import { sseHeaders } from "../sse.ts";
import { ResumableStream } from "./resumable-stream.ts";
import type { LiveSession } from "./session-table.ts";

/** The header that names a legacy session. */
export const sessionHeader = "mcp-session-id";

/**
 * Where the messages of one legacy POST go: nowhere until there is something to say, then onto a stream that outlives
 * the connection. Several requests of a batch share one.
 */
export class CallStream {
  readonly #live: LiveSession;
  readonly #reply: Reply;
  readonly #accepted: Accepted;
  readonly #endpoint: Endpoint;
  #stream: ResumableStream | undefined;

  constructor(live: LiveSession, reply: Reply, accepted: Accepted, endpoint: Endpoint) {
    this.#live = live;
    this.#reply = reply;
    this.#accepted = accepted;
    this.#endpoint = endpoint;
  }

  send(message: Message): Awaitable<void> {
    if (!this.#accepted.sse) return;
    return this.#open().send(toData(message), this.#endpoint.clock.now());
  }

  /** Lets the connection go; see `WireContext.release`. */
  release(): Awaitable<void> {
    if (this.#accepted.sse) return this.#open().release();
  }

  /** Answers: on the stream if there is one, else as JSON. */
  finish(responses: Response | readonly Response[]): Awaitable<void> {
    if (this.#stream !== undefined || !this.#accepted.json) return this.#end(responses);
    sendJson(this.#reply, 200, encodeMessage(responses));
  }

  /** Ends the stream without an answer; false when there is none. */
  async abandon(): Promise<boolean> {
    await this.#stream?.end();
    return this.#stream !== undefined;
  }

  async #end(responses: Response | readonly Response[]): Promise<void> {
    const out = this.#open();
    const items = Array.isArray(responses) ? (responses as readonly Response[]) : [responses as Response];
    for (const response of items) await out.send(toData(response), this.#endpoint.clock.now());
    await out.end();
  }

  #open(): ResumableStream {
    if (this.#stream !== undefined) return this.#stream;
    const { events, clock, retryMs } = this.#endpoint;
    const stream = new ResumableStream(randomBytes(9).toString("base64url"), events, clock.now());
    this.#stream = stream;
    keep(stream, this.#live, this.#endpoint);
    const canLeave = isAtLeast(this.#live.session.handshake.revision, "2025-11-25");
    const sink = this.#endpoint.openSink(this.#reply, { ...sseHeaders, [sessionHeader]: this.#live.token });
    const failed = (error: unknown): void => this.#endpoint.onWarning("A stream cannot be resumed", error);
    // Whatever is sent next waits for its turn behind this.
    void recover(() => stream.open(sink, canLeave ? retryMs : undefined), failed);
    return stream;
  }
}

/** Most streams kept of one session whose calls have ended; beyond that the oldest cannot be resumed any more. */
const maxStreams = 64;

function keep(stream: ResumableStream, live: LiveSession, endpoint: Endpoint): void {
  const { streams } = live;
  streams.set(stream.id, stream);
  if (streams.size <= maxStreams) return;
  for (const oldest of streams.values()) {
    if (!oldest.isEnded) continue;
    streams.delete(oldest.id);
    return endpoint.forget(oldest);
  }
}
