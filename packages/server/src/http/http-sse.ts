import { randomBytes } from "node:crypto";
import { BoundedQueue, Quota } from "@junctor/core/async";
import { serveChannel } from "@junctor/core/channel";
import { ClosedError, RpcError } from "@junctor/core/errors";
import { type Server, messageShape } from "@junctor/core/mcp";
import { type Channel, type Incoming, type Message, parseMessage } from "@junctor/core/rpc";
import { atExpiry, type Endpoint, refuseGreedy, refuseNew } from "./endpoint.ts";
import { type Admission, type Admitted, ownerOf } from "./guard.ts";
import { type FrameSink, refuse, sendError, sseHeaders, toData, toFrame } from "./reply.ts";
import { toAddressed } from "./session-table.ts";

interface SseConversation {
  readonly caller: string | undefined;
  readonly server: Server;
  readonly inbox: BoundedQueue<readonly Incoming[]>;
  /** Posts that wait for room in the inbox. */
  waiting: number;
}

const maxWaiting = 64;

/**
 * Most characters that wait for a slow reader before it is cut. Answers have more room: independent calls may end at the same
 * time, which does not make their reader slow.
 */
const maxQueued = 1024 * 1024;
const maxQueuedAnswers = 16 * 1024 * 1024;

/** The last entry of an inbox, after all accepted requests. */
const farewell: readonly Incoming[] = [];

/**
 * The two routes of revision 2024-11-05: a stream that stays open, and a place to post to. Each open stream is a channel of its own,
 * served like any other; it ends when the client leaves.
 */
export class HttpSse {
  readonly #endpoint: Endpoint;
  readonly #messagesPath: string;
  readonly #address: string | undefined;
  readonly #conversations = new Map<string, SseConversation>();
  readonly #quota: Quota<string | undefined>;
  #isDrained = false;

  constructor(endpoint: Endpoint, messagesPath: string, maxConversations: number, address?: string) {
    this.#endpoint = endpoint;
    this.#messagesPath = messagesPath;
    this.#address = address;
    this.#quota = new Quota({ what: "open streams", total: maxConversations });
  }

  async open(admission: Admission, server: Server): Promise<void> {
    const { reply, caller, identity } = admission;
    const { admissions, clock } = this.#endpoint;
    const owner = ownerOf(admission);
    if (refuseNew(admission, this.#endpoint)) return;
    const refusal = this.#quota.refusal(owner) ?? admissions.refusal({ owner, isStream: true });
    if (refusal !== undefined) return refuseGreedy(admission, refusal, this.#endpoint);
    this.#quota.add(owner);
    const id = toAddressed(randomBytes(24).toString("base64url"), this.#address);
    const inbox = new BoundedQueue<readonly Incoming[]>(maxWaiting);
    this.#conversations.set(id, { caller, server, inbox, waiting: 0 });
    reply.onHangUp(() => inbox.close());
    const sink = this.#endpoint.openSink(reply, sseHeaders);
    const draining = new AbortController();
    const admitted: Admitted = {
      caller,
      owner,
      isStream: true,
      cut: (reason) => sink.cut(reason),
      revoke: () => {
        sink.end();
        inbox.close();
      },
    };
    const number = admissions.add(admitted);
    const stop = atExpiry(identity, clock, () => admitted.revoke?.());
    try {
      await sink.write(`event: endpoint\ndata: ${this.#messagesPath}?sessionId=${id}\n\n`);
      await serveChannel(server, toChannel(inbox, sink, draining), {
        clock,
        drain: draining.signal,
        owner,
        identity,
        ...(caller === undefined ? {} : { caller }),
      });
    } finally {
      stop();
      admissions.delete(number);
      this.#quota.give(owner);
      this.#conversations.delete(id);
    }
  }

  async post(body: Uint8Array, admission: Admission): Promise<void> {
    const { http, reply, caller } = admission;
    const sessionId = http.query.get("sessionId");
    if (sessionId === null) return refuse(reply, 400, "The query parameter sessionId is missing");
    const conversation = this.#conversations.get(sessionId);
    if (conversation === undefined || conversation.caller !== caller || conversation.inbox.isClosed)
      return refuse(reply, 404, "Session not found; open the stream again");
    const incoming = parseMessage(body, { shape: messageShape });
    if (incoming.kind === "invalid" && incoming.error.code === "rpc.parse")
      return sendError(reply, 400, incoming.error);
    if (conversation.waiting >= maxWaiting)
      return sendError(reply, 503, new RpcError("rpc.internal", "Too many messages wait; try again later"));
    const id = incoming.kind === "request" ? incoming.id : undefined;
    if (hasRequest(incoming) && refuseNew(admission, this.#endpoint, id)) return;
    conversation.waiting++;
    await conversation.inbox.push([incoming]);
    conversation.waiting--;
    reply.send(202, { "content-type": "text/plain" }, "Accepted");
  }

  /** Ends each stream as soon as its requests are answered, and takes no new ones. */
  drain(): void {
    if (!this.#isDrained) this.#conversations.forEach(({ inbox }) => void inbox.push(farewell));
    this.#isDrained = true;
  }

  /** Ends every stream now; with `gone`, only those to that server. */
  close(gone?: Server): void {
    this.#conversations.forEach(({ inbox, server }) => {
      if (gone === undefined || gone === server) inbox.close();
    });
  }
}

/** A channel that receives by posts and sends on the stream. Aborts `draining` when it receives the farewell. */
function toChannel(
  inbox: BoundedQueue<readonly Incoming[]>,
  sink: FrameSink,
  draining: AbortController,
): Channel {
  // One write at a time: the answers of independent calls must not overrun the reader together.
  let tail: Promise<void> = Promise.resolve();
  const queued = { events: 0, answers: 0 };
  return {
    send: async (message) => {
      const items = Array.isArray(message) ? (message as readonly Message[]) : [message as Message];
      const frames = items.map((item) => toFrame(toData(item))).join("");
      if (queued.events > maxQueued || queued.events + queued.answers > maxQueuedAnswers)
        sink.cut(`the reader is slow: ${queued.events + queued.answers} characters wait for it`);
      if (!sink.isOpen) throw new ClosedError("not_sent", "the client closed its stream");
      const kind = items.some(isAnswer) ? "answers" : "events";
      queued[kind] += frames.length;
      tail = tail.then(() => {
        queued[kind] -= frames.length;
        return sink.write(frames);
      });
      await tail;
    },
    async *[Symbol.asyncIterator]() {
      for await (const messages of inbox) {
        if (messages === farewell) draining.abort();
        else yield messages;
      }
    },
    [Symbol.asyncDispose]: () => {
      inbox.close();
      sink.end();
      return Promise.resolve();
    },
  };
}

function isAnswer({ kind }: Message): boolean {
  return kind === "result" || kind === "error";
}

function hasRequest(incoming: Incoming): boolean {
  return incoming.kind === "batch"
    ? incoming.items.some(({ kind }) => kind === "request")
    : incoming.kind === "request";
}
