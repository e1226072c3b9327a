import { andThen, type Awaitable, isPromise, settled, type Clock } from "@junctor/core/async";
import type { EventStore } from "./event-store.ts";
import { type FrameSink, toFrame, toPrimingFrame } from "./reply.ts";

/** Most characters that wait for a slow reader, as they do for any other; beyond that it is cut, and may come back. */
const maxQueued = 1024 * 1024;

/** How long a client without a connection is waited for, and how often it is looked for. */
const awayMs = 30_000;
const lookMs = 1000;

/**
 * A legacy event stream that outlives its connection. Events are stored before they are written, and everything about
 * a stream happens one after the other, so a replay that races a live event neither repeats nor loses one.
 */
export class ResumableStream {
  readonly id: string;
  readonly #store: EventStore;
  /** Whose share of the store its events count towards. */
  readonly #owner: string | undefined;
  #sink: FrameSink | undefined;
  /** No more events will come. Stored events can still be fetched until the stream is forgotten. */
  isEnded = false;
  /** The last act that is underway or waits for its turn; undefined when there is none. */
  #tail: Promise<void> | undefined;
  /** Characters of events that were sent and have not had their turn. */
  #queued = 0;
  /** When the last event was sent or the stream was last attached to. */
  usedAt: number;

  constructor(id: string, store: EventStore, now: number, owner?: string) {
    this.id = id;
    this.#store = store;
    this.#owner = owner;
    this.usedAt = now;
  }

  get isConnected(): boolean {
    return this.#sink?.isOpen === true;
  }

  /** Begins on a new connection. With `retryMs`, the client learns an event id to come back with, so the connection may be released. */
  open(sink: FrameSink, retryMs: number | undefined): Awaitable<void> {
    this.#sink = sink; // At once: `isConnected` is true from now on.
    if (retryMs === undefined) return;
    return this.#inTurn(() =>
      andThen(settled(this.#store.append(this.id, "", this.#owner)), (id) =>
        writeEvent(this, sink, toPrimingFrame(id, retryMs)),
      ),
    );
  }

  /**
   * Continues over a new connection with the events after `lastEventId`. When they are no longer kept, the connection is cut. An
   * older connection is cut first: a reader that vanished without a word may hold up a write on it.
   */
  resume(sink: FrameSink, lastEventId: string, now: number): Awaitable<void> {
    this.#sink?.cut("it went on over another connection");
    return this.#inTurn(async () => {
      const missed = await this.#store.after(lastEventId);
      if (missed === undefined) return sink.cut("what it missed is no longer kept");
      this.usedAt = now;
      this.#sink?.cut("it went on over another connection");
      this.#sink = sink;
      for (const { id, data } of missed) if (data !== "") await sink.write(toFrame(data, id));
      if (this.isEnded) sink.end();
    });
  }

  /** Stores an event and, when a client is connected, writes it. Waits until it was taken. */
  send(data: string, now: number): Awaitable<void> {
    if (this.#queued > maxQueued) this.#sink?.cut(`the reader is slow: ${this.#queued} bytes wait for it`);
    this.#queued += data.length;
    return this.#inTurn(() => {
      this.#queued -= data.length;
      if (this.isEnded) return;
      this.usedAt = now;
      return andThen(settled(this.#store.append(this.id, data, this.#owner)), (id) =>
        writeEvent(this, this.#sink, toFrame(data, id)),
      );
    });
  }

  /**
   * Closes the connection. A stream that is only `released` stays open, and the client comes back for the rest. One that is
   * `ended` gets no more events. The events of one that is `forgotten` are dropped.
   */
  close(how: "released" | "ended" | "forgotten"): Awaitable<void> {
    return this.#inTurn(() => {
      this.isEnded ||= how !== "released";
      this.#sink?.end();
      this.#sink = undefined;
      if (how === "forgotten") return settled(this.#store.forget(this.id));
    });
  }

  /** Acts at once when nothing is underway, else when it is this act's turn. */
  #inTurn(act: () => Awaitable<void>): Awaitable<void> {
    const acted = this.#tail === undefined ? act() : this.#tail.then(act, act);
    if (!isPromise(acted)) return acted;
    this.#tail = acted;
    const isDone = (): void => {
      if (this.#tail === acted) this.#tail = undefined;
    };
    acted.then(isDone, isDone);
    return acted;
  }
}

/** Streams of which an event with an id was written to a client. A client without an id cannot resume. */
const resumable = new WeakSet<ResumableStream>();

function writeEvent(stream: ResumableStream, sink: FrameSink | undefined, frame: string): Awaitable<void> {
  if (sink?.isOpen === true) resumable.add(stream);
  return sink?.write(frame);
}

/**
 * Calls back once when the client of a stream is given up: it has had no connection for 30 s, or it has none and was never sent an
 * event id to resume with. The returned function stops it.
 */
export function onceGone(stream: ResumableStream, clock: Clock, gone: () => void): () => void {
  let seenAt = clock.now();
  let stop = (): void => {};
  const look = (): void => {
    const { isConnected } = stream;
    if (isConnected) seenAt = clock.now();
    if (!isConnected && (!resumable.has(stream) || clock.now() - seenAt >= awayMs)) return gone();
    stop = clock.timer(lookMs, look);
  };
  stop = clock.timer(lookMs, look);
  return () => stop();
}
