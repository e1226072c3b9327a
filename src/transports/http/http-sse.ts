import { randomBytes } from "node:crypto";
import { BoundedQueue } from "../../async/queue.ts";
import { ClosedError } from "../../errors/closed-error.ts";
import { RpcError } from "../../errors/rpc-error.ts";
import type { Channel, Incoming } from "../../jsonrpc/channel.ts";
import type { Message, RequestId } from "../../jsonrpc/message.ts";
import { parseMessage } from "../../jsonrpc/parse.ts";
import { messageShape } from "../../mcp/shape.ts";
import { serveChannel } from "../serve-channel.ts";
import type { Endpoint } from "./endpoint.ts";
import { sendError, toData } from "./exchange.ts";
import { stoppingError } from "./post.ts";
import type { HttpRequest, Reply } from "./reply.ts";
import { sseHeaders, toFrame } from "./sse.ts";

interface Conversation {
  readonly caller: string | undefined;
  readonly inbox: BoundedQueue<readonly Incoming[]>;
  /** Requests that were neither answered nor cancelled yet. */
  readonly unanswered: Set<RequestId>;
  /** Posts that wait for room in the inbox. */
  waiting: number;
}

/** The two routes of revision 2024-11-05: a stream that stays open, and a place to post to. */
export interface HttpSse {
  open(reply: Reply, caller: string | undefined): Promise<void>;
  post(http: HttpRequest, body: Uint8Array, reply: Reply, caller: string | undefined): Promise<void>;
  /** Ends each stream as soon as its requests are answered, and takes no new ones. */
  drain(): void;
  /** Ends every stream now. */
  close(): void;
}

const maxWaiting = 64;

/** Each open stream is a channel of its own, served like any other; it ends when the client leaves. */
export function createHttpSse(endpoint: Endpoint, messagesPath: string, maxConversations: number): HttpSse {
  const conversations = new Map<string, Conversation>();
  const leaveIfIdle = ({ inbox, unanswered }: Conversation): void => {
    if (endpoint.isDraining && unanswered.size === 0) inbox.close();
  };
  return {
    open: async (reply, caller) => {
      if (endpoint.isDraining) return sendError(reply, 503, stoppingError());
      if (conversations.size >= maxConversations) {
        return sendError(
          reply,
          503,
          new RpcError("rpc.internal", `Too many streams; at most ${maxConversations} at once`),
        );
      }
      const id = randomBytes(24).toString("base64url");
      const inbox = new BoundedQueue<readonly Incoming[]>(maxWaiting);
      const conversation: Conversation = { caller, inbox, unanswered: new Set(), waiting: 0 };
      conversations.set(id, conversation);
      reply.onHangUp(() => inbox.close());
      const sink = endpoint.openSink(reply, sseHeaders);
      await sink.write(`event: endpoint\ndata: ${messagesPath}?sessionId=${id}\n\n`);
      const write = async (items: readonly Message[]): Promise<void> => {
        for (const item of items) {
          await sink.write(toFrame(toData(item)));
          if (item.kind === "result" || item.kind === "error") settle(conversation, item.id);
        }
        leaveIfIdle(conversation);
      };
      // One after the other: answers to calls that know nothing of each other must not overrun the reader together.
      let tail = Promise.resolve();
      const channel: Channel = {
        send: (message) => {
          if (!sink.isOpen)
            return Promise.reject(new ClosedError("not_sent", "the client closed its stream"));
          const items = Array.isArray(message) ? (message as readonly Message[]) : [message as Message];
          tail = tail.then(() => write(items));
          return tail;
        },
        [Symbol.asyncIterator]: () => inbox[Symbol.asyncIterator](),
        [Symbol.asyncDispose]: () => {
          inbox.close();
          sink.end();
          return Promise.resolve();
        },
      };
      try {
        await serveChannel(endpoint.server, channel, {
          clock: endpoint.clock,
          ...(caller === undefined ? {} : { caller }),
        });
      } finally {
        conversations.delete(id);
      }
    },
    post: async (http, body, reply, caller) => {
      const id = http.query.get("sessionId");
      if (id === null)
        return sendError(
          reply,
          400,
          new RpcError("rpc.invalid_request", "The query parameter sessionId is missing"),
        );
      const conversation = conversations.get(id);
      if (conversation === undefined || conversation.caller !== caller || conversation.inbox.isClosed) {
        return sendError(
          reply,
          404,
          new RpcError("rpc.invalid_request", "Session not found; open the stream again"),
        );
      }
      const incoming = parseMessage(body, { shape: messageShape });
      if (incoming.kind === "invalid" && incoming.error.code === "rpc.parse")
        return sendError(reply, 400, incoming.error);
      if (conversation.waiting >= maxWaiting) {
        return sendError(reply, 503, new RpcError("rpc.internal", "Too many messages wait; try again later"));
      }
      if (incoming.kind === "request") {
        if (endpoint.isDraining) return sendError(reply, 503, stoppingError(), incoming.id);
        conversation.unanswered.add(incoming.id);
      }
      if (incoming.kind === "notification" && incoming.method === "notifications/cancelled")
        settle(conversation, incoming.params?.at("requestId")?.text as RequestId | undefined);
      conversation.waiting++;
      await conversation.inbox.push([incoming]);
      conversation.waiting--;
      reply.send(202, { "content-type": "text/plain" }, "Accepted");
      leaveIfIdle(conversation);
    },
    drain: () => conversations.forEach(leaveIfIdle),
    close: () => conversations.forEach(({ inbox }) => inbox.close()),
  };
}

function settle({ unanswered }: Conversation, id: RequestId | undefined): void {
  if (id !== undefined) unanswered.delete(id);
}
