import { createDeferred } from "../async/deferred.ts";
import { ClosedError } from "../errors/closed-error.ts";
import type { Channel, Incoming } from "../jsonrpc/channel.ts";
import { Peer } from "../jsonrpc/peer.ts";
import type { Link, LinkEvents, LinkMode } from "../mcp/link.ts";

export interface ChannelLinkOptions {
  readonly target: string;
  readonly events: LinkEvents;
  /** Told what came and was passed over. */
  readonly onDropped?: (what: string) => void;
}

/** A link over a channel: a child's pipes, a TCP socket, byte streams, memory. */
export function createChannelLink(channel: Channel, { target, events, onDropped }: ChannelLinkOptions): Link {
  // Until something else is settled, a server may not ask: whoever probes must not be drawn into a conversation.
  let mode: LinkMode = { kind: "modern", revision: "" };
  let isOver = false;
  const heard: Channel = {
    send: (message) => channel.send(message),
    [Symbol.asyncIterator]: () => listen(channel, () => mode, onDropped),
    [Symbol.asyncDispose]: () => channel[Symbol.asyncDispose](),
  };
  const peer = new Peer(heard, {
    handle: (request, { signal }) => events.asked(request, signal),
    notified: (notification) => events.notified(notification),
    ...(onDropped === undefined ? {} : { dropped: onDropped }),
  });
  const closed = createDeferred<ClosedError>();
  void peer.run().then(() => {
    isOver = true;
    peer.abort();
    closed.resolve(new ClosedError("outcome_unknown", `${target} is gone`));
  });
  return {
    target,
    closed: closed.promise,
    request: ({ method, params, stop, id, onSent }) => {
      if (!isOver && !stop.isAborted) onSent?.();
      return peer.request(method, params, id === undefined ? { stop } : { stop, id });
    },
    notify: (method, params) => peer.notify(method, params),
    use: (settled) => {
      mode = settled;
    },
    [Symbol.asyncDispose]: () => channel[Symbol.asyncDispose](),
  };
}

/**
 * What a client listens to. Nonsense is passed over without a word: many a server prints its banner to the wrong stream,
 * and an answer to that would confuse it more. Requests are for legacy clients, and batches for those of one revision.
 */
async function* listen(
  channel: Channel,
  mode: () => LinkMode,
  onDropped: ((what: string) => void) | undefined,
): AsyncGenerator<readonly Incoming[]> {
  const isUnwanted = ({ kind }: Incoming): boolean =>
    kind === "invalid" || kind === "batch" || (kind === "request" && mode().kind === "modern");
  const toWanted = (incoming: Incoming): readonly Incoming[] => {
    if (incoming.kind === "batch" && mode().revision === "2025-03-26")
      return incoming.items.flatMap(toWanted);
    if (!isUnwanted(incoming)) return [incoming];
    onDropped?.(incoming.kind === "invalid" ? incoming.error.message : `a ${incoming.kind}`);
    return [];
  };
  for await (const messages of channel) {
    if (!messages.some(isUnwanted)) yield messages;
    else yield messages.flatMap(toWanted);
  }
}
