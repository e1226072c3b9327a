import { type Backoff, createBackoff } from "../async/backoff.ts";
import { type Clock, sleep } from "../async/clock.ts";
import { ClosedError } from "../errors/closed-error.ts";
import type { Conversation } from "./conversation.ts";

/** How long a conversation must have lasted for the next one to start without waiting. */
const stableMs = 5000;

/**
 * The conversation with one server, made anew when it ended. However many need it at once, it is made once; after one
 * that failed or was short, the next waits, longer each time, so that a server that cannot stay up is not stormed.
 */
export class Conversations implements AsyncDisposable {
  readonly #begin: () => Promise<Conversation>;
  readonly #clock: Clock;
  readonly #backoff: Backoff;
  readonly #onRenewed: () => void;
  readonly #closing = new AbortController();
  #current: Promise<Conversation> | undefined;
  #waitMs = 0;
  #hasBegun = false;

  constructor(
    begin: () => Promise<Conversation>,
    clock: Clock,
    onRenewed: () => void,
    backoff: Backoff = createBackoff(),
  ) {
    this.#begin = begin;
    this.#clock = clock;
    this.#onRenewed = onRenewed;
    this.#backoff = backoff;
  }

  /** The conversation that is on, or the next. */
  get(): Promise<Conversation> {
    if (this.#closing.signal.aborted)
      return Promise.reject(new ClosedError("not_sent", "the client is closed"));
    return (this.#current ??= this.#start());
  }

  /** Ends a conversation that turned out to be over, if it is still the current one. */
  async renew(over: Conversation): Promise<void> {
    if ((await this.#current) !== over) return;
    this.#current = undefined;
    await over.link[Symbol.asyncDispose]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(new ClosedError("not_sent", "the client is closed"));
    const current = await this.#current?.catch(() => undefined);
    await current?.link[Symbol.asyncDispose]();
  }

  async #start(): Promise<Conversation> {
    try {
      if (this.#waitMs > 0) await sleep(this.#waitMs, this.#clock, this.#closing.signal);
      const conversation = await this.#begin();
      const startedAt = this.#clock.now();
      void conversation.link.closed.then(() => {
        const wasStable = this.#clock.now() - startedAt >= stableMs;
        if (wasStable) this.#backoff.reset();
        this.#waitMs = wasStable ? 0 : this.#backoff.next();
        this.#current = undefined;
      });
      if (this.#hasBegun) this.#onRenewed();
      this.#hasBegun = true;
      return conversation;
    } catch (error) {
      this.#waitMs = this.#backoff.next();
      this.#current = undefined;
      throw error;
    }
  }
}
