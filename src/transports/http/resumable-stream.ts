import type { EventStore } from "./event-store.ts";
import type { FrameSink } from "./reply.ts";
import { toFrame, toPrimingFrame } from "./sse.ts";

/**
 * A legacy event stream that outlives its connection. Events are stored before they are written, and everything about
 * a stream happens one after the other, so a replay that races a live event neither repeats nor loses one.
 */
export class ResumableStream {
  readonly id: string;
  readonly #store: EventStore;
  #sink: FrameSink | undefined;
  #isEnded = false;
  #tail: Promise<void> = Promise.resolve();
  /** When the last event was sent or the stream was last attached to. */
  usedAt: number;

  constructor(id: string, store: EventStore, now: number) {
    this.id = id;
    this.#store = store;
    this.usedAt = now;
  }

  get isConnected(): boolean {
    return this.#sink?.isOpen === true;
  }

  get isEnded(): boolean {
    return this.#isEnded;
  }

  /** Begins on a fresh connection; `retryMs` makes it one the client may be sent away from. */
  open(sink: FrameSink, retryMs: number | undefined): Promise<void> {
    return this.#inTurn(async () => {
      this.#sink = sink;
      if (retryMs !== undefined)
        await sink.write(toPrimingFrame(await this.#store.append(this.id, ""), retryMs));
    });
  }

  /** Goes on over a new connection with what came after an event; false when that is no longer known. */
  async resume(sink: FrameSink, lastEventId: string): Promise<boolean> {
    let isKnown = false;
    await this.#inTurn(async () => {
      const missed = await this.#store.after(lastEventId);
      if (missed === undefined) return;
      isKnown = true;
      this.#sink?.end();
      this.#sink = sink;
      for (const { id, data } of missed) if (data !== "") await sink.write(toFrame(data, id));
      if (this.#isEnded) sink.end();
    });
    return isKnown;
  }

  /** Stores an event and, when somebody is connected, writes it. Resolves when it was taken. */
  send(data: string, now: number): Promise<void> {
    return this.#inTurn(async () => {
      if (this.#isEnded) return;
      this.usedAt = now;
      const id = await this.#store.append(this.id, data);
      await this.#sink?.write(toFrame(data, id));
    });
  }

  /** Lets the connection go; the client comes back for the rest. */
  release(): Promise<void> {
    return this.#inTurn(() => {
      this.#sink?.end();
      this.#sink = undefined;
      return Promise.resolve();
    });
  }

  /** No more events will come. What was stored can still be fetched until the stream is forgotten. */
  end(): Promise<void> {
    return this.#inTurn(() => {
      this.#isEnded = true;
      this.#sink?.end();
      return Promise.resolve();
    });
  }

  #inTurn(act: () => Promise<void>): Promise<void> {
    this.#tail = this.#tail.then(act, act);
    return this.#tail;
  }
}
