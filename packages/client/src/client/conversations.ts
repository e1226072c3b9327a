import {
  createBackoff,
  type Cancellation,
  type Clock,
  sleep,
  waitFor,
  ClosingSet,
} from "@junctor/core/async";
import { AuthorizationError, ClosedError, SessionExpiredError, TimeoutError } from "@junctor/core/errors";
import type { RawJson } from "@junctor/core/json";
import type { Notification } from "@junctor/core/rpc";
import type { Agreement, Conversation, RequestSpec } from "./conversation.ts";

/** How long a conversation must have lasted for the next one to start without waiting. */
const stableMs = 5000;

/** Most sign-ins for one request. */
const maxSignIns = 3;

/** Sends a request in the conversation that is on, or in the next. For `about` see `LinkRequest`. */
export type Send = (
  method: string,
  params: RawJson | undefined,
  spec: RequestSpec,
  about?: string,
) => Promise<RawJson>;

/** Listens to the conversations with one server. */
interface ConversationEvents {
  /** Takes a notification; true when no other needs to hear of it. */
  take(notification: Notification): boolean;
  /** The conversation is another one than before. */
  renewed?(): void;
}

interface ConversationsOptions {
  readonly begin: (
    signal: AbortSignal,
    notified: (notification: Notification) => void,
  ) => Promise<Conversation>;
  /** Has a person sign in; see `Connector`. */
  readonly signIn: (error: AuthorizationError) => Promise<boolean>;
  readonly clock: Clock;
  /** Whether another is begun after one was lost. */
  readonly reconnects: boolean;
  /** Whether a server may forget a session. */
  readonly hasSessions: boolean;
  readonly onLost: (reason: ClosedError) => void;
}

/**
 * The conversation with one server, made anew when it ended. However many need it at once, it is made once; after one
 * that failed or was short, the next waits, longer each time, so that a server that cannot stay up is not stormed.
 */
export class Conversations implements AsyncDisposable {
  readonly #options: ConversationsOptions;
  readonly #backoff = createBackoff();
  readonly #closing = new AbortController();
  readonly #over = new ClosingSet();
  readonly #listeners: ConversationEvents[] = [];
  #current: Promise<Conversation> | undefined;
  #live: Conversation | undefined;
  #agreement: Agreement | undefined;
  #waitMs = 0;

  constructor(options: ConversationsOptions) {
    this.#options = options;
  }

  /** The last agreement, whether or not it still holds. */
  get agreement(): Agreement | undefined {
    return this.#agreement;
  }

  /** The conversation that is on, or the next. */
  get(): Promise<Conversation> {
    if (this.#closing.signal.aborted)
      return Promise.reject(new ClosedError("not_sent", "the client is closed"));
    return (this.#current ??= this.#start());
  }

  readonly send: Send = (...request) =>
    this.#live === undefined
      ? this.#next(request[2].stop).then((conversation) => this.#sendIn(conversation, ...request))
      : this.#sendIn(this.#live, ...request);

  hear(listener: ConversationEvents): void {
    this.#listeners.push(listener);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(new ClosedError("not_sent", "the client is closed"));
    const last = await this.#current?.catch(() => undefined);
    this.#live = undefined;
    if (last !== undefined) void this.#over.close(last.link);
    await this.#over[Symbol.asyncDispose]();
  }

  #next(stop: Cancellation): Promise<Conversation> {
    return waitFor(this.get(), stop).catch((error: unknown) => {
      throw toNotSent(error);
    });
  }

  /** A session that expired is begun anew, once; the request that met it was not carried out, so it is sent again. */
  #sendIn(conversation: Conversation, ...request: Parameters<Send>): Promise<RawJson> {
    const answer = conversation.request(...request);
    if (!this.#options.hasSessions) return answer;
    return answer.catch(async (error: unknown) => {
      if (isSignIn(error)) return this.#retrySignedIn(error, () => conversation.request(...request));
      if (!(error instanceof SessionExpiredError)) throw error;
      if (this.#live === conversation) {
        this.#end();
        this.#over.closeWhenIdle(conversation.link, conversation.idle());
      }
      return (await this.#next(request[2].stop)).request(...request);
    });
  }

  async #start(): Promise<Conversation> {
    const { begin, clock } = this.#options;
    const { signal } = this.#closing;
    try {
      if (this.#waitMs > 0) await sleep(this.#waitMs, clock, signal);
      const notified = (notification: Notification): void =>
        void this.#listeners.some((listener) => listener.take(notification));
      const attempt = (): Promise<Conversation> => begin(signal, notified);
      const conversation = await attempt().catch((error: unknown) => this.#retrySignedIn(error, attempt));
      const isRenewal = this.#agreement !== undefined;
      this.#live = conversation;
      this.#agreement = conversation.agreement;
      void this.#watch(conversation);
      if (isRenewal) for (const listener of this.#listeners) listener.renewed?.();
      return conversation;
    } catch (error) {
      this.#waitMs = this.#backoff.next();
      this.#current = undefined;
      throw error;
    }
  }

  /** Waits for the end of a conversation, and closes its link. */
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
      this.#end();
    }
    void this.#over.close(conversation.link);
  }

  /** Tries again after a sign-in, a few times at most: there are servers that nothing satisfies. */
  async #retrySignedIn<T>(failure: unknown, attempt: () => Promise<T>): Promise<T> {
    let error = failure;
    for (let signIns = 0; signIns < maxSignIns && isSignIn(error); signIns++) {
      if (!(await this.#options.signIn(error))) break;
      try {
        return await attempt();
      } catch (next) {
        error = next;
      }
    }
    throw error;
  }

  #end(): void {
    this.#live = undefined;
    this.#current = undefined;
  }
}

/** The same failure as `not_sent`: it happened to another request or to the handshake, before this request was sent. */
export function toNotSent(error: unknown): unknown {
  if (error instanceof ClosedError && error.delivery !== "not_sent")
    return new ClosedError("not_sent", "the server was lost before", { cause: error });
  if (error instanceof TimeoutError && error.delivery !== "not_sent")
    return new TimeoutError(error.kind, error.timeoutMs, "not_sent");
  return error;
}

/** Whether a sign-in may help. */
function isSignIn(error: unknown): error is AuthorizationError {
  return (
    error instanceof AuthorizationError &&
    (error.code === "auth.login_required" || error.code === "auth.insufficient_scope")
  );
}
