import { randomBytes } from "node:crypto";
import { BoundedQueue } from "../../async/queue.ts";
import { ClosedError } from "../../errors/closed-error.ts";
import { RpcError } from "../../errors/rpc-error.ts";
import type { Channel, Incoming } from "../../jsonrpc/channel.ts";
import type { Message } from "../../jsonrpc/message.ts";
import { parseMessage } from "../../jsonrpc/parse.ts";
import { messageShape } from "../../mcp/shape.ts";
import { serveChannel } from "../serve-channel.ts";
import type { Endpoint } from "./endpoint.ts";
import { sendError, toData } from "./exchange.ts";
import type { HttpRequest, Reply } from "./reply.ts";
import { sseHeaders, toFrame } from "./sse.ts";

interface Conversation {
  readonly caller: string | undefined;
  readonly inbox: BoundedQueue<Incoming>;
}

/** The two routes of revision 2024-11-05: a stream that stays open, and a place to post to. */
export interface HttpSse {
  open(reply: Reply, caller: string | undefined): Promise<void>;
  post(http: HttpRequest, body: Uint8Array, reply: Reply, caller: string | undefined): Promise<void>;
  close(): void;
}

const maxWaiting = 64;

/** Each open stream is a channel of its own, served like any other; it ends when the client leaves. */
export function createHttpSse(endpoint: Endpoint, messagesPath: string, maxConversations: number): HttpSse {
  const conversations = new Map<string, Conversation>();
  return {
    open: async (reply, caller) => {
      if (conversations.size >= maxConversations) {
        return sendError(
          reply,
          503,
          new RpcError("rpc.internal", `Too many streams; at most ${maxConversations} at once`),
        );
      }
      const id = randomBytes(24).toString("base64url");
      const inbox = new BoundedQueue<Incoming>(maxWaiting);
      conversations.set(id, { caller, inbox });
      reply.onHangUp(() => inbox.close());
      const sink = endpoint.openSink(reply, sseHeaders);
      await sink.write(`event: endpoint\ndata: ${messagesPath}?sessionId=${id}\n\n`);
      const channel: Channel = {
        send: async (message) => {
          if (!sink.isOpen) throw new ClosedError("not_sent", "the client closed its stream");
          const items = Array.isArray(message) ? (message as readonly Message[]) : [message as Message];
          for (const item of items) await sink.write(toFrame(toData(item)));
        },
        [Symbol.asyncIterator]: () => inbox[Symbol.asyncIterator](),
        [Symbol.asyncDispose]: () => {
          inbox.close();
          sink.end();
          return Promise.resolve();
        },
      };
      await serveChannel(endpoint.server, channel, {
        clock: endpoint.clock,
        ...(caller === undefined ? {} : { caller }),
      });
      conversations.delete(id);
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
      if (conversation === undefined || conversation.caller !== caller) {
        return sendError(
          reply,
          404,
          new RpcError("rpc.invalid_request", "Session not found; open the stream again"),
        );
      }
      const incoming = parseMessage(body, { shape: messageShape });
      if (incoming.kind === "invalid" && incoming.error.code === "rpc.parse")
        return sendError(reply, 400, incoming.error);
      await conversation.inbox.push(incoming);
      reply.send(202, { "content-type": "text/plain" }, "Accepted");
    },
    close: () => conversations.forEach(({ inbox }) => inbox.close()),
  };
}
