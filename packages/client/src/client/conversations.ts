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

/**
 * The conversation with one server, made anew when it ended. However many need it at once, it is made once; after one
 * that failed or was short, the next waits, longer each time, so that a server that cannot stay up is not stormed.
 */
export interface Conversations extends AsyncDisposable {
  /** The last agreement, whether or not it still holds. */
  readonly agreement: Agreement | undefined;
  /** The conversation that is on, or the next. */
  get(): Promise<Conversation>;
  readonly send: Send;
  hear(listener: ConversationEvents): void;
}

interface ConversationsOptions {
  readonly begin: (
    signal: AbortSignal,
    notified: (notification: Notification) => void,
  ) => Promise<Conversation>;
  /** Has a person sign in; see `ClientWays`. */
  readonly signIn: (error: AuthorizationError) => Promise<boolean>;
  readonly clock: Clock;
  /** Whether another is begun after one was lost. */
  readonly reconnects: boolean;
  /** Whether a server may forget a session. */
  readonly hasSessions: boolean;
  readonly onLost: (reason: ClosedError) => void;
}

export function createConversations(options: ConversationsOptions): Conversations {
  const { begin, signIn, clock, reconnects, hasSessions, onLost } = options;
  const backoff = createBackoff();
  const closing = new AbortController();
  const over = new ClosingSet();
  const listeners: ConversationEvents[] = [];
  let current: Promise<Conversation> | undefined;
  let live: Conversation | undefined;
  let agreement: Agreement | undefined;
  let waitMs = 0;

  const notified = (notification: Notification): void =>
    void listeners.some((listener) => listener.take(notification));
  const end = (): void => {
    live = undefined;
    current = undefined;
  };
  /** Tries again after a sign-in, a few times at most: there are servers that nothing satisfies. */
  const signedIn = async <T>(failure: unknown, attempt: () => Promise<T>): Promise<T> => {
    let error = failure;
    for (let signIns = 0; signIns < maxSignIns && isSignIn(error); signIns++) {
      if (!(await signIn(error))) break;
      try {
        return await attempt();
      } catch (next) {
        error = next;
      }
    }
    throw error;
  };
  const start = async (): Promise<Conversation> => {
    try {
      if (waitMs > 0) await sleep(waitMs, clock, closing.signal);
      const attempt = (): Promise<Conversation> => begin(closing.signal, notified);
      const conversation = await attempt().catch((error: unknown) => signedIn(error, attempt));
      const isRenewal = agreement !== undefined;
      live = conversation;
      ({ agreement } = conversation);
      void watch(conversation);
      if (isRenewal) for (const listener of listeners) listener.renewed?.();
      return conversation;
    } catch (error) {
      waitMs = backoff.next();
      current = undefined;
      throw error;
    }
  };
  /** Waits for the end of a conversation, and closes its link. */
  const watch = async (conversation: Conversation): Promise<void> => {
    const startedAt = clock.now();
    const reason = await conversation.link.closed;
    if (live === conversation) {
      if (!reconnects) closing.abort(reason);
      onLost(reason);
      const wasStable = clock.now() - startedAt >= stableMs;
      if (wasStable) backoff.reset();
      waitMs = wasStable ? 0 : backoff.next();
      end();
    }
    void over.close(conversation.link);
  };
  const get = (): Promise<Conversation> => {
    if (closing.signal.aborted) return Promise.reject(new ClosedError("not_sent", "the client is closed"));
    return (current ??= start());
  };
  const next = (stop: Cancellation): Promise<Conversation> =>
    waitFor(get(), stop).catch((error: unknown) => {
      throw toNotSent(error);
    });
  /** A session that expired is begun anew, once; the request that met it was not carried out, so it is sent again. */
  const sendIn = (conversation: Conversation, ...request: Parameters<Send>): Promise<RawJson> => {
    const answer = conversation.request(...request);
    if (!hasSessions) return answer;
    return answer.catch(async (error: unknown) => {
      if (isSignIn(error)) return signedIn(error, () => conversation.request(...request));
      if (!(error instanceof SessionExpiredError)) throw error;
      if (live === conversation) {
        end();
        over.closeWhenIdle(conversation.link, conversation.idle());
      }
      return (await next(request[2].stop)).request(...request);
    });
  };

  return {
    get agreement() {
      return agreement;
    },
    get,
    send: (...request) =>
      live === undefined
        ? next(request[2].stop).then((conversation) => sendIn(conversation, ...request))
        : sendIn(live, ...request),
    hear: (listener) => void listeners.push(listener),
    [Symbol.asyncDispose]: async () => {
      closing.abort(new ClosedError("not_sent", "the client is closed"));
      const last = await current?.catch(() => undefined);
      live = undefined;
      if (last !== undefined) void over.close(last.link);
      await over[Symbol.asyncDispose]();
    },
  };
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
