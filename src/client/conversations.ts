import { type Backoff, createBackoff } from "../async/backoff.ts";
import { type Clock, sleep } from "../async/clock.ts";
import { ClosingSet } from "../async/closing-set.ts";
import { ClosedError } from "../errors/closed-error.ts";
import type { Agreement } from "./agreement.ts";
import type { Conversation } from "./conversation.ts";

/** How long a conversation must have lasted for the next one to start without waiting. */
const stableMs = 5000;

interface ConversationsOptions {
  readonly begin: (signal: AbortSignal) => Promise<Conversation>;
  readonly clock: Clock;
  /** Whether another is begun after one was lost. */
  readonly reconnects: boolean;
  readonly onRenewed: () => void;
  readonly onLost: (reason: ClosedError) => void;
  readonly backoff?: Backoff;
}

/**
 * The conversation with one server, made anew when it ended. However many need it at once, it is made once; after one
 * that failed or was short, the next waits, longer each time, so that a server that cannot stay up is not stormed.
 */
export class Conversations implements AsyncDisposable {
  readonly #options: ConversationsOptions;
  readonly #backoff: Backoff;
  readonly #closing = new AbortController();
  readonly #over = new ClosingSet();
  #current: Promise<Conversation> | undefined;
  #live: Conversation | undefined;
  #agreement: Agreement | undefined;
  #waitMs = 0;

  constructor(options: ConversationsOptions) {
    this.#options = options;
    this.#backoff = options.backoff ?? createBackoff();
  }

  /** What was settled last, whether or not it still holds. */
  get agreement(): Agreement | undefined {
    return this.#agreement;
  }

  /** The conversation that is on, if there is one: saves those in a hurry a promise. */
  get live(): Conversation | undefined {
    return this.#live;
  }

  /** The conversation that is on, or the next. */
  get(): Promise<Conversation> {
    if (this.#closing.signal.aborted)
      return Promise.reject(new ClosedError("not_sent", "the client is closed"));
    return (this.#current ??= this.#start());
  }

  /** A conversation turned out to be over: the next to ask begins another. What it still has underway is let finish. */
  retire(over: Conversation): void {
    if (this.#live !== over) return;
    this.#live = undefined;
    this.#current = undefined;
    this.#over.closeWhenIdle(over.link, over.idle());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(new ClosedError("not_sent", "the client is closed"));
    const current = await this.#current?.catch(() => undefined);
    this.#live = undefined;
    if (current !== undefined) void this.#over.close(current.link);
    await this.#over[Symbol.asyncDispose]();
  }

  async #start(): Promise<Conversation> {
    const { signal } = this.#closing;
    try {
      if (this.#waitMs > 0) await sleep(this.#waitMs, this.#options.clock, signal);
      const conversation = await this.#options.begin(signal);
      const isRenewal = this.#agreement !== undefined;
      this.#live = conversation;
      this.#agreement = conversation.agreement;
      void this.#watch(conversation);
      if (isRenewal) this.#options.onRenewed();
      return conversation;
    } catch (error) {
      this.#waitMs = this.#backoff.next();
      this.#current = undefined;
      throw error;
    }
  }

  /** Waits for the end of a conversation, and closes what is left of it. */
  async #watch(conversation: Conversation): Promise<void> {
    const { clock, reconnects, onLost } = this.#options;
    const startedAt = clock.now();
    const reason = await conversation.link.closed;
    if (this.#live === conversation) {
      if (!reconnects) this.#closing.abort(reason);
      onLost(reason);
      const wasStable = clock.now() - startedAt >= stableMs;
      if (wasStable) this.#backoff.reset();
      this.#waitMs = wasStable ? 0 : this.#backoff.next();
      this.#live = undefined;
      this.#current = undefined;
    }
    void this.#over.close(conversation.link);
  }
}
