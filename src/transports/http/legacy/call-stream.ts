import { randomBytes } from "node:crypto";
import { type Awaitable, recover } from "../../../async/awaitable.ts";
import { encodeMessage, type Message, type Response } from "../../../jsonrpc/message.ts";
import { isAtLeast } from "../../../mcp/revision.ts";
import { sessionHeader } from "../../../mcp/session.ts";
import type { Endpoint } from "../server/endpoint.ts";
import { type Accepted, type Reply, sendJson, toData } from "../server/reply.ts";
import { sseHeaders } from "../sse.ts";
import { ResumableStream } from "./resumable-stream.ts";
import type { LiveSession } from "./session-table.ts";

/**
 * Where the messages of one legacy POST go: nowhere until there is something to say, then onto a stream that outlives
 * the connection. Several requests of a batch share one.
 */
export class CallStream {
  readonly live: LiveSession;
  readonly endpoint: Endpoint;
  readonly #reply: Reply;
  readonly #accepted: Accepted;
  #stream: ResumableStream | undefined;

  constructor(live: LiveSession, accepted: Accepted, reply: Reply, endpoint: Endpoint) {
    this.live = live;
    this.endpoint = endpoint;
    this.#reply = reply;
    this.#accepted = accepted;
  }

  /** Whether the client can be asked something: it takes event streams. */
  get canAsk(): boolean {
    return this.#accepted.sse;
  }

  send(message: Message): Awaitable<void> {
    if (!this.#accepted.sse) return;
    return this.#open().send(toData(message), this.endpoint.clock.now());
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

  /** Ends the POST without an answer: its requests were cancelled. */
  async abandon(): Promise<void> {
    if (this.#stream === undefined) this.#reply.send(202, {});
    else await this.#stream.end();
  }

  async #end(responses: Response | readonly Response[]): Promise<void> {
    const out = this.#open();
    const items = Array.isArray(responses) ? (responses as readonly Response[]) : [responses as Response];
    for (const response of items) await out.send(toData(response), this.endpoint.clock.now());
    await out.end();
  }

  #open(): ResumableStream {
    if (this.#stream !== undefined) return this.#stream;
    const { events, clock, retryMs } = this.endpoint;
    const stream = new ResumableStream(randomBytes(9).toString("base64url"), events, clock.now());
    this.#stream = stream;
    keep(stream, this.live, this.endpoint);
    const canLeave = isAtLeast(this.live.session.handshake.revision, "2025-11-25");
    const sink = this.endpoint.openSink(this.#reply, { ...sseHeaders, [sessionHeader]: this.live.token });
    const failed = (error: unknown): void => this.endpoint.onWarning("A stream cannot be resumed", error);
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
