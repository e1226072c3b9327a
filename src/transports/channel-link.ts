import { type Clock, systemClock } from "../async/clock.ts";
import { createDeferred } from "../async/deferred.ts";
import { ClosedError } from "../errors/closed-error.ts";
import type { Channel, Incoming } from "../jsonrpc/channel.ts";
import { Peer } from "../jsonrpc/peer.ts";
import type { Link, LinkEvents, LinkMode } from "../mcp/link.ts";
import { PacedReader, Pause } from "./paced-reader.ts";

interface ChannelLinkOptions {
  readonly target: string;
  readonly events: LinkEvents;
  /** Told what came and was passed over. */
  readonly onDropped?: (what: string) => void;
  /** Resolves when the server is gone, where that is known before all it said is read: the rest is read at once then. */
  readonly gone?: Promise<unknown>;
  readonly clock?: Clock;
}

/**
 * A link over a channel: a child's pipes, a TCP socket, byte streams, memory. A server that floods us is not read from for
 * a while, so that its pipe fills up and it waits. Nothing is lost of what it says, its answers included, but all is late.
 */
export function createChannelLink(channel: Channel, options: ChannelLinkOptions): Link {
  const { target, events, onDropped, clock = systemClock } = options;
  // Until something else is settled, a server may not ask: whoever probes must not be drawn into a conversation.
  let mode: LinkMode = { kind: "modern", revision: "" };
  let isOver = false;
  /** Requests whose answers have not come. */
  let unanswered = 0;
  const countAnswer = (): boolean => {
    if (unanswered === 0) return false;
    unanswered--;
    return true;
  };
  const pause = new Pause(clock);
  void options.gone?.then(() => pause.end("read on"));
  const heard: Channel = {
    send: (message) => channel.send(message),
    [Symbol.asyncIterator]: () =>
      new PacedReader(channel, { countAnswer, pause, clock, filter: createFilter(() => mode, onDropped) }),
    [Symbol.asyncDispose]: () => channel[Symbol.asyncDispose](),
  };
  const peer = new Peer(heard, {
    handle: (request, { cancellation }) => events.asked(request, cancellation.signal),
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
      unanswered++;
      return peer.request(method, params, id === undefined ? { stop } : { stop, id });
    },
    notify: (method, params) => peer.notify(method, params),
    use: (settled) => {
      mode = settled;
    },
    [Symbol.asyncDispose]: () => {
      pause.end("stop");
      return channel[Symbol.asyncDispose]();
    },
  };
}

/**
 * What a client listens to. Nonsense is passed over without a word: many a server prints its banner to the wrong stream,
 * and an answer to that would confuse it more. Requests are for legacy clients, and batches for those of one revision.
 */
function createFilter(
  mode: () => LinkMode,
  onDropped: ((what: string) => void) | undefined,
): (messages: readonly Incoming[]) => readonly Incoming[] {
  const isUnwanted = ({ kind }: Incoming): boolean =>
    kind === "invalid" || kind === "batch" || (kind === "request" && mode().kind === "modern");
  const toWanted = (incoming: Incoming): readonly Incoming[] => {
    if (incoming.kind === "batch" && mode().revision === "2025-03-26")
      return incoming.items.flatMap(toWanted);
    if (!isUnwanted(incoming)) return [incoming];
    onDropped?.(incoming.kind === "invalid" ? incoming.error.message : `a ${incoming.kind}`);
    return [];
  };
  return (messages) => (messages.some(isUnwanted) ? messages.flatMap(toWanted) : messages);
}
