import { type Clock, systemClock, createDeferred, LeakyBucket } from "@junctor/core/async";
import { ClosedError, RpcError } from "@junctor/core/errors";
import type { RawJson } from "@junctor/core/json";
import type { Link, LinkEvents, LinkMode } from "@junctor/core/mcp";
import { type Channel, type Incoming, type Invalid, Peer } from "@junctor/core/rpc";

/** The next messages of a channel. */
type Received = IteratorResult<readonly Incoming[], undefined>;

interface ChannelLinkOptions {
  readonly target: string;
  readonly events: LinkEvents;
  /** Called for messages that were ignored. */
  readonly onDropped?: (what: string) => void;
  /** Called for answers that cannot be read. */
  readonly onWarning?: ((text: string) => void) | undefined;
  /** Resolves when the server is gone, if that is known before all its output is read. The rest is then read without pauses. */
  readonly gone?: Promise<unknown>;
  readonly clock?: Clock;
}

/**
 * A link over a channel: a child's pipes, a TCP socket, byte streams, memory. A server that floods us is not read for a while,
 * so that its pipe fills up and it waits. None of its messages is lost, but all are late, its answers included.
 */
export function createChannelLink(channel: Channel, options: ChannelLinkOptions): Link {
  const { target, events, onDropped, onWarning, clock = systemClock } = options;
  // Until the era is settled, a server may not send requests: they are no answer to a probe.
  let mode: LinkMode = { kind: "modern", revision: "" };
  let isOver = false;
  /** Requests whose answers have not come. */
  let unanswered = 0;
  const countAnswer = (): boolean => {
    if (unanswered === 0) return false;
    unanswered--;
    return true;
  };
  /** Fails the call that a broken answer is for, at once: no other answer will come. */
  const fail = ({ answer, error }: Invalid): void => {
    if (answer === undefined) return;
    const isKnown = peer.fail(answer, new RpcError("rpc.other", error.message, { cause: error }));
    if (isKnown) countAnswer();
    const whose = isKnown ? "the call that waits for it has failed" : "and its call is not known";
    onWarning?.(`The server sent an answer that cannot be read, ${whose}: ${error.message}`);
  };
  const pause = new Pause(clock);
  void options.gone?.then(() => pause.end("read on"));
  const paced: Channel = {
    send: (message) => channel.send(message),
    [Symbol.asyncIterator]: () =>
      new PacedReader(channel, {
        countAnswer,
        pause,
        clock,
        filter: createFilter(() => mode, fail, onDropped),
      }),
    [Symbol.asyncDispose]: () => channel[Symbol.asyncDispose](),
  };
  const peer = new Peer(paced, {
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
 * Selects the messages that a client handles. Input that is not a message is ignored: many servers print a banner to the wrong stream,
 * and an error response would confuse them. Only legacy servers may send requests, and only those of 2025-03-26 batches.
 */
function createFilter(
  mode: () => LinkMode,
  fail: (invalid: Invalid) => void,
  onDropped: ((what: string) => void) | undefined,
): (messages: readonly Incoming[]) => readonly Incoming[] {
  const isUnwanted = ({ kind }: Incoming): boolean =>
    kind === "invalid" || kind === "batch" || (kind === "request" && mode().kind === "modern");
  const toWanted = (incoming: Incoming): readonly Incoming[] => {
    if (incoming.kind === "batch" && mode().revision === "2025-03-26")
      return incoming.items.flatMap(toWanted);
    if (!isUnwanted(incoming)) return [incoming];
    if (incoming.kind === "invalid") fail(incoming);
    onDropped?.(incoming.kind === "invalid" ? incoming.error.message : `a ${incoming.kind}`);
    return [];
  };
  return (messages) => (messages.some(isUnwanted) ? messages.flatMap(toWanted) : messages);
}

/**
 * Unsolicited messages of a server have a price in time, so that a server that never stops takes a small part of ours: a chunk of 64
 * KiB is rare enough to delay fewer than one in a hundred calls to another server. A line that is not a message costs more,
 * because it becomes an error with a stack (18 µs; a message takes 2 to 10). A request costs most, because it is answered: the writes
 * of the answers, which wake the server, were a third of the cost of a flood of requests.
 */
const messageMs = 0.5;
const requestMs = 10;
const invalidMs = 2.5;
export const kibibyteMs = 0.5;

/** The cost that may come at once: 2,000 small messages, or a banner of 400 lines. */
export const patienceMs = 1000;

/**
 * How much is handled in one go while a server sends too much: this many messages, or fewer that cost this much. The answers to the
 * requests of a piece are sent in one write.
 */
const pieceLength = 5;
const pieceMs = 50;

interface PacedReaderOptions {
  /** Counts an answer. Returns false for one that no request waits for. */
  readonly countAnswer: () => boolean;
  readonly pause: Pause;
  readonly clock: Clock;
  /** The messages of one read that are passed on. */
  readonly filter: (messages: readonly Incoming[]) => readonly Incoming[];
}

/**
 * Reads a channel, and pauses in proportion to the messages that answer no request. It is not a generator, which would keep its
 * last value in memory while it waits for the next.
 */
class PacedReader implements AsyncIterableIterator<readonly Incoming[]> {
  readonly #options: PacedReaderOptions;
  readonly #source: AsyncIterator<readonly Incoming[]>;
  /** The messages of a server that sends too many, in pieces, with a pause after each. */
  #pieces: (readonly Incoming[])[] = [];
  #pauseMs = 0;
  #owesPause = false;
  readonly #bucket: LeakyBucket;

  constructor(channel: AsyncIterable<readonly Incoming[]>, options: PacedReaderOptions) {
    this.#options = options;
    this.#bucket = new LeakyBucket(options.clock, patienceMs);
    this.#source = channel[Symbol.asyncIterator]();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<Received> {
    const { pause, filter } = this.#options;
    if (this.#owesPause) {
      this.#owesPause = false;
      await pause.take(this.#pauseMs);
      // Without this, a link closed during a flood would be read at full speed until the flood ends.
      if (pause.ending === "stop") return { done: true, value: undefined };
    }
    const piece = this.#pieces.shift();
    if (piece !== undefined) {
      this.#owesPause = true;
      return { done: false, value: filter(piece) };
    }
    const received = await this.#source.next();
    if (received.done === true) return { done: true, value: undefined };
    const { countAnswer } = this.#options;
    const costs = received.value.map((message) => costOf(message, countAnswer));
    const waitMs = this.#bucket.charge(costs.reduce((sum, cost) => sum + cost, 0));
    if (waitMs === 0) return { done: false, value: filter(received.value) };
    this.#pieces = toPieces(received.value, costs);
    this.#pauseMs = waitMs / this.#pieces.length;
    return this.next();
  }

  async return(): Promise<Received> {
    await this.#source.return?.();
    return { done: true, value: undefined };
  }
}

function toPieces(messages: readonly Incoming[], costs: readonly number[]): (readonly Incoming[])[] {
  const pieces: Incoming[][] = [];
  let piece: Incoming[] = [];
  let costMs = 0;
  messages.forEach((message, index) => {
    if (piece.length === 0) pieces.push(piece);
    piece.push(message);
    costMs += costs[index] ?? 0;
    if (piece.length < pieceLength && costMs < pieceMs) return;
    piece = [];
    costMs = 0;
  });
  return pieces;
}

/** A pause that can be ended early. */
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

/** The price of a message. `countAnswer` counts an answer, and returns false for one that no request waits for. */
export function costOf(incoming: Incoming, countAnswer: () => boolean): number {
  switch (incoming.kind) {
    case "result":
      return countAnswer() ? 0 : messageMs + toKibibytes(incoming.result) * kibibyteMs;
    case "error":
      return countAnswer() ? 0 : messageMs;
    case "notification":
      return messageMs + toKibibytes(incoming.params) * kibibyteMs;
    case "request":
      return requestMs + toKibibytes(incoming.params) * kibibyteMs;
    case "invalid":
      return invalidMs;
    case "batch":
      return incoming.items.reduce((sum, item) => sum + costOf(item, countAnswer), 0);
  }
}

function toKibibytes(json: RawJson | undefined): number {
  return json === undefined ? 0 : json.byteLength / 1024;
}
