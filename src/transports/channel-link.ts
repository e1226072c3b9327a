import { createDeferred } from "../async/deferred.ts";
import { ClosedError } from "../errors/closed-error.ts";
import { RpcError } from "../errors/rpc-error.ts";
import type { Channel } from "../jsonrpc/channel.ts";
import { Peer } from "../jsonrpc/peer.ts";
import type { Link, LinkEvents } from "../mcp/link.ts";

export interface ChannelLinkOptions {
  readonly target: string;
  readonly events: LinkEvents;
  /** Whether server requests may be answered; modern servers send none, and what they send is dropped. */
  readonly onDropped?: (what: string) => void;
}

/** A link over a channel: a child's pipes, a TCP socket, byte streams, memory. */
export function createChannelLink(channel: Channel, { target, events, onDropped }: ChannelLinkOptions): Link {
  let isModern = false;
  let isOver = false;
  const peer = new Peer(channel, {
    handle: (request, { signal }) => {
      if (!isModern) return events.asked(request, signal);
      return Promise.reject(new RpcError("rpc.method_not_found", "Modern servers send no requests"));
    },
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
    request: ({ method, params, signal, id, onSent }) => {
      if (!isOver && !signal.aborted) onSent?.();
      return peer.request(method, params, { signal, ...(id === undefined ? {} : { id }) });
    },
    notify: (method, params) => peer.notify(method, params),
    use: (mode) => {
      isModern = mode.kind === "modern";
    },
    [Symbol.asyncDispose]: async () => {
      await channel[Symbol.asyncDispose]();
    },
  };
}
