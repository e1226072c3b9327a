import { BoundedQueue } from "../async/index.ts";
import { ClosedError } from "../errors/index.ts";
import { type Server, messageShape } from "../mcp/index.ts";
import { type Channel, type Incoming, encodeMessage, parseMessage } from "../rpc/index.ts";
import { serveChannel, type ServeOptions } from "./serve-channel.ts";
import { defaultMaxLineBytes, refuseTooLong } from "./stream-channel.ts";

const maxWaiting = 64;

/**
 * Two channels joined in memory: what one sends, the other receives, encoded as bytes and
 * checked like untrusted input.
 */
export function createMemoryPair(): readonly [Channel, Channel] {
  const left = new BoundedQueue<readonly Incoming[]>(maxWaiting);
  const right = new BoundedQueue<readonly Incoming[]>(maxWaiting);
  return [createEnd(left, right), createEnd(right, left)];
}

function createEnd(
  inbox: BoundedQueue<readonly Incoming[]>,
  outbox: BoundedQueue<readonly Incoming[]>,
): Channel {
  let lastSent: Promise<void> = Promise.resolve();
  return {
    send: (message) => {
      const push = async (): Promise<void> => {
        if (outbox.isClosed) throw new ClosedError("not_sent", "the other side is gone");
        await outbox.push([receive(encodeMessage(message).bytes)]);
      };
      // Sends are chained, so that senders that do not wait for room cannot overfill the queue.
      const sent = lastSent.then(push);
      lastSent = sent.catch(() => {});
      return sent;
    },
    [Symbol.asyncIterator]: () => inbox[Symbol.asyncIterator](),
    [Symbol.asyncDispose]: () => {
      inbox.close();
      outbox.close();
      return Promise.resolve();
    },
  };
}

function receive(bytes: Uint8Array): Incoming {
  if (bytes.length > defaultMaxLineBytes) return refuseTooLong(defaultMaxLineBytes);
  return parseMessage(bytes, { shape: messageShape });
}

/**
 * Connects to a server in this process, without a wire. Disposing the channel ends the conversation.
 *
 * @example
 * await using channel = connectInMemory(server);
 */
export function connectInMemory(server: Server, options: ServeOptions = {}): Channel {
  const [client, served] = createMemoryPair();
  void serveChannel(server, served, options);
  return client;
}
