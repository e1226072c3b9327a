import { type Clock, systemClock } from "../async/clock.ts";
import { createDeferred } from "../async/deferred.ts";
import { ClosedError } from "../errors/closed-error.ts";
import type { RawJson } from "../json/raw.ts";
import type { Channel, Incoming } from "../jsonrpc/channel.ts";
import { Peer } from "../jsonrpc/peer.ts";
import type { Link, LinkEvents, LinkMode } from "../mcp/link.ts";

export interface ChannelLinkOptions {
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
  const isAsked = (): boolean => unanswered > 0 && unanswered-- > 0;
  const pause = new Pause(clock);
  void options.gone?.then(() => pause.end("read on"));
  const heard: Channel = {
    send: (message) => channel.send(message),
    [Symbol.asyncIterator]: () => listen(pace(channel, isAsked, pause, clock), () => mode, onDropped),
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
 * What a server says unasked has a price in time, so that one that never stops takes a small part of ours: its chunks of 64
 * KiB come so rarely that fewer than one call in a hundred to another server meets one. A line that is no message is
 * dearer, because it becomes an error with a stack (18 µs; a message takes 2 to 10), and so is a request, which is answered.
 */
const messageMs = 0.5;
const requestMs = 2;
const invalidMs = 2.5;
const kibibyteMs = 0.5;

/** How much of it may come at once: 2,000 small messages, or a banner of 400 lines. */
const patienceMs = 1000;

/** Most messages handled in one go while a server says too much. */
const pieceLength = 10;

/** Receives from a channel, but not faster than what comes unasked is paid for with time. */
async function* pace(
  channel: Channel,
  isAsked: () => boolean,
  pause: Pause,
  clock: Clock,
): AsyncGenerator<readonly Incoming[]> {
  /** When everything so far is paid for. */
  let paidAt = 0;
  for await (const messages of channel) {
    const costMs = messages.reduce((sum, message) => sum + costOf(message, isAsked), 0);
    const now = clock.now();
    if (costMs > 0) paidAt = Math.max(paidAt, now - patienceMs) + costMs;
    if (paidAt <= now) {
      yield messages;
      continue;
    }
    const pauseMs = (paidAt - now) / Math.ceil(messages.length / pieceLength);
    for (let start = 0; start < messages.length; start += pieceLength) {
      yield messages.slice(start, start + pieceLength);
      await pause.take(pauseMs);
      // Whoever is closed in the middle of a flood would be read at full speed until it ends.
      if (pause.ending === "stop") return;
    }
  }
}

/** Waiting that can be put an end to. */
class Pause {
  readonly #clock: Clock;
  #wake: () => void = () => {};
  /** Why there are no more pauses. */
  ending: "read on" | "stop" | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  take(ms: number): Promise<void> {
    if (this.ending !== undefined) return Promise.resolve();
    return new Promise((resolve) => {
      const stop = this.#clock.timer(ms, resolve);
      this.#wake = () => {
        stop();
        resolve();
      };
    });
  }

  end(how: "read on" | "stop"): void {
    this.ending = how;
    this.#wake();
  }
}

function costOf(incoming: Incoming, isAsked: () => boolean): number {
  switch (incoming.kind) {
    case "result":
      return isAsked() ? 0 : messageMs + toKibibytes(incoming.result) * kibibyteMs;
    case "error":
      return isAsked() ? 0 : messageMs;
    case "notification":
      return messageMs + toKibibytes(incoming.params) * kibibyteMs;
    case "request":
      return requestMs + toKibibytes(incoming.params) * kibibyteMs;
    case "invalid":
      return invalidMs;
    case "batch":
      return incoming.items.reduce((sum, item) => sum + costOf(item, isAsked), 0);
  }
}

function toKibibytes(json: RawJson | undefined): number {
  return json === undefined ? 0 : json.textLength / 1024;
}

/**
 * What a client listens to. Nonsense is passed over without a word: many a server prints its banner to the wrong stream,
 * and an answer to that would confuse it more. Requests are for legacy clients, and batches for those of one revision.
 */
async function* listen(
  channel: AsyncIterable<readonly Incoming[]>,
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
