import {
  ending,
  type Cancellation,
  type Clock,
  createDeferred,
  type Deferred,
  LazyAbort,
  Numbered,
  createBackoff,
  sleep,
  waitFor,
  ClosingSet,
} from "@junctor/core/async";
import { AuthorizationError, ClosedError, SessionExpiredError, TimeoutError } from "@junctor/core/errors";
import { prependMembers, RawJson } from "@junctor/core/json";
import {
  type Link,
  type LinkEvents,
  metaKeys,
  type LegacyRevision,
  type ModernRevision,
  type ClientCapabilities,
  type Implementation,
  isLogLevel,
  type LogLevel,
  logLevels,
  type ServerCapabilities,
} from "@junctor/core/mcp";
import type { CallEvent } from "@junctor/core/provider";
import type { Notification } from "@junctor/core/rpc";

/** What a client and a server settled on. */
export interface Agreement {
  readonly mode:
    | { readonly kind: "modern"; readonly revision: ModernRevision }
    | { readonly kind: "legacy"; readonly revision: LegacyRevision };
  /** Self-reported: for display and logs, never for decisions. */
  readonly serverInfo: Implementation | undefined;
  readonly capabilities: ServerCapabilities;
  readonly instructions: string | undefined;
}

/** How one request is made. */
export interface RequestSpec {
  readonly stop: Cancellation;
  /** Takes progress and logs of this request. They cost the server work, so leave it out where they are not needed. */
  readonly onEvent?: ((event: CallEvent) => void) | undefined;
  /** False says that `onEvent` is for log messages only. */
  readonly wantsProgress?: boolean | undefined;
  readonly logLevel?: LogLevel | undefined;
  readonly capabilities?: ClientCapabilities | undefined;
  readonly mirrored?: { readonly [header: string]: string } | undefined;
  /** More for `_meta`: members of an object, as JSON text without the braces. */
  readonly meta?: string | undefined;
  /** Answers the questions of a legacy server on this request's own stream. The client answers those on other streams. */
  readonly onAsked?: LinkEvents["asked"] | undefined;
  /** Called when the request is about to leave. */
  readonly onSent?: (() => void) | undefined;
}

/** The client that makes the requests. */
interface Speaker {
  readonly info: Implementation;
  readonly capabilities: ClientCapabilities;
  readonly clock: Clock;
}

/** How long a server may go on sending messages about a request that was given up. */
const strayMs = 5000;

/** Sends requests to one server, in the form of its era. */
export class Conversation {
  readonly agreement: Agreement;
  readonly link: Link;
  /** Whether the stream of a legacy server's announcements is open, where it has to be asked for. */
  isHearing = false;
  readonly #clock: Clock;
  readonly #isLegacy: boolean;
  readonly #addEnvelope: AddEnvelope;
  readonly #notified: (notification: Notification) => void;
  /** The listener for progress under each token. Tokens are minted here. */
  readonly #listeners = new Numbered<(event: CallEvent) => void>();
  /**
   * The listeners of calls that asked for log messages. A message does not name its call, so it is delivered only while one
   * call is underway.
   */
  readonly #loggers = new Numbered<(event: CallEvent) => void>();
  /** The rank of the log level that a legacy server was asked for. */
  #logRank: number = Number.POSITIVE_INFINITY;
  #underway = 0;
  /** The requests among them that log nothing: lists, and `subscriptions/listen`, which never ends. */
  #silent = 0;
  /** Until when the server may still send messages about a request that was given up. */
  #strayUntil = 0;
  #idle: Deferred<void> | undefined;

  /** `notified` takes notifications that belong to no request underway. */
  constructor(
    link: Link,
    agreement: Agreement,
    { info, capabilities, clock }: Speaker,
    notified: (notification: Notification) => void,
  ) {
    const { mode } = agreement;
    this.agreement = agreement;
    this.link = link;
    this.#clock = clock;
    this.#isLegacy = mode.kind === "legacy";
    this.#addEnvelope =
      mode.kind === "modern" ? createModernEnvelope(mode.revision, info, capabilities) : addLegacyEnvelope;
    this.#notified = notified;
  }

  /** Sends a request and resolves with its result, whatever its `resultType`. For `about` see `LinkRequest`. */
  request(method: string, params: RawJson | undefined, spec: RequestSpec, about?: string): Promise<RawJson> {
    const { stop, onEvent, logLevel, capabilities, mirrored, onSent, onAsked, meta } = spec;
    const wantsEvents = onEvent !== undefined;
    const token = wantsEvents && spec.wantsProgress !== false ? this.#listeners.add(onEvent) : undefined;
    const logger = wantsEvents && logLevel !== undefined ? this.#loggers.add(onEvent) : undefined;
    if (wantsEvents && logLevel !== undefined) this.#setLogLevel(logLevel);
    const isSilent = method === "subscriptions/listen" || method.endsWith("/list");
    this.#underway++;
    if (isSilent) this.#silent++;
    const enveloped = this.#addEnvelope(params, { progressToken: token, logLevel, capabilities, meta });
    const hasEvents = onAsked !== undefined || logLevel !== undefined;
    const events = hasEvents ? () => this.#eventsOf(spec) : undefined;
    const answer = this.link.request({ method, params: enveloped, stop, about, mirrored, onSent, events });
    return ending(answer, () => {
      if (isSilent) this.#silent--;
      else if (stop.isAborted && (logLevel !== undefined || this.#isLegacy))
        this.#strayUntil = this.#clock.now() + strayMs;
      if (token !== undefined) this.#listeners.delete(token);
      if (logger !== undefined) this.#loggers.delete(logger);
      if (--this.#underway === 0) this.#idle?.resolve();
    });
  }

  /** Resolves when nothing is underway. */
  idle(): Promise<void> {
    if (this.#underway === 0) return Promise.resolve();
    this.#idle ??= createDeferred();
    return this.#idle.promise;
  }

  /** Takes a notification of the link. Progress goes to the request that asked for it, everything else to the client. */
  take(notification: Notification): void {
    const { method, params } = notification;
    if (method === "notifications/progress") {
      const listener = this.#listeners.get(params?.at("progressToken")?.value as number);
      const event = listener === undefined ? undefined : toProgress(params);
      if (event !== undefined) listener?.(event);
      return;
    }
    // A legacy server that was once asked to log does so for every call. A message can be attributed only if one call is
    // underway and none was given up a moment ago.
    const isAboutOne =
      this.#loggers.size === 1 &&
      this.#underway - this.#silent === 1 &&
      this.#clock.now() >= this.#strayUntil;
    const event = method === "notifications/message" && isAboutOne ? toLog(params) : undefined;
    if (event === undefined) this.#notified(notification);
    else for (const logger of this.#loggers.values()) logger(event);
  }

  /** A legacy server has one level for all requests: set the lowest that any of them wanted. */
  #setLogLevel(level: LogLevel): void {
    const rank = logLevels.indexOf(level);
    const isOffered = this.agreement.capabilities.logging !== undefined;
    if (!this.#isLegacy || !isOffered || this.#logRank <= rank) return;
    this.#logRank = rank;
    const params = RawJson.fromValue({ level });
    // Not awaited: a server that refuses keeps its level.
    this.link.request({ method: "logging/setLevel", params, stop: new LazyAbort() }).catch(() => {});
  }

  /** The events of a request's own stream, where there is one: they belong to that request. */
  #eventsOf({ onAsked, onEvent, logLevel }: RequestSpec): Partial<LinkEvents> {
    return {
      ...(onAsked === undefined ? {} : { asked: onAsked }),
      notified: (notification) => {
        const isLog = notification.method === "notifications/message" && logLevel !== undefined;
        const event = isLog ? toLog(notification.params) : undefined;
        if (event === undefined) this.take(notification);
        else onEvent?.(event);
      },
    };
  }
}

function toProgress(params: RawJson | undefined): CallEvent | undefined {
  const { progress, total, message } = (params?.value ?? {}) as { readonly [key: string]: unknown };
  if (typeof progress !== "number") return undefined;
  return {
    kind: "progress",
    progress,
    ...(typeof total === "number" ? { total } : {}),
    ...(typeof message === "string" ? { message } : {}),
  };
}

/** A log message as an event; undefined when it is not valid. */
export function toLog(params: RawJson | undefined): Extract<CallEvent, { kind: "log" }> | undefined {
  const { level, logger, data } = (params?.value ?? {}) as { readonly [key: string]: unknown };
  if (!isLogLevel(level)) return undefined;
  return { kind: "log", level, data, ...(typeof logger === "string" ? { logger } : {}) };
}

/** What changes from one request to the next. */
interface EnvelopeExtras {
  readonly progressToken?: number | undefined;
  readonly logLevel?: LogLevel | undefined;
  /** Declared instead of the client's own, when the request is made for another caller. */
  readonly capabilities?: ClientCapabilities | undefined;
  /** More members, as JSON text. */
  readonly meta?: string | undefined;
}

/** Puts `_meta` on params: the sender's facts that every modern request carries, and the progress token of either era. */
type AddEnvelope = (params: RawJson | undefined, extras: EnvelopeExtras) => RawJson | undefined;

const empty = RawJson.fromText("{}");

/** For modern servers. The members that never change are written once. */
export function createModernEnvelope(
  revision: ModernRevision,
  info: Implementation,
  own: ClientCapabilities,
): AddEnvelope {
  const head = `"${metaKeys.protocolVersion}":"${revision}","${metaKeys.clientInfo}":${JSON.stringify(info)}`;
  const ownCapabilities = JSON.stringify(own);
  return (params, { progressToken, logLevel, capabilities, meta }) => {
    const declared = capabilities === undefined ? ownCapabilities : JSON.stringify(capabilities);
    const token = progressToken === undefined ? "" : `,"progressToken":${progressToken}`;
    const level = logLevel === undefined ? "" : `,"${metaKeys.logLevel}":"${logLevel}"`;
    const more = meta === undefined ? "" : `,${meta}`;
    return prependMembers(
      `"_meta":{${head},"${metaKeys.clientCapabilities}":${declared}${token}${level}${more}}`,
      params ?? empty,
    );
  };
}

/** For legacy servers, which know the sender from the handshake. */
const addLegacyEnvelope: AddEnvelope = (params, { progressToken, meta }) => {
  const token = progressToken === undefined ? undefined : `"progressToken":${progressToken}`;
  const members = token === undefined || meta === undefined ? (token ?? meta) : `${token},${meta}`;
  return members === undefined ? params : prependMembers(`"_meta":{${members}}`, params ?? empty);
};

/** How long a conversation must have lasted for the next one to start without waiting. */
const stableMs = 5000;

/** The most sign-ins for one request. */
const maxSignIns = 3;

/** Sends a request in the current conversation, or in the next. For `about` see `LinkRequest`. */
export type Send = (
  method: string,
  params: RawJson | undefined,
  spec: RequestSpec,
  about?: string,
) => Promise<RawJson>;

/** Listens to the conversations with one server. */
interface ConversationEvents {
  /** Takes a notification; true when no other listener needs it. */
  take(notification: Notification): boolean;
  /** Called when a new conversation took the place of an earlier one. */
  renewed?(): void;
}

interface ConversationsOptions {
  readonly begin: (
    signal: AbortSignal,
    notified: (notification: Notification) => void,
  ) => Promise<Conversation>;
  /** Asks a person to sign in; see `Connector`. */
  readonly signIn: (error: AuthorizationError) => Promise<boolean>;
  readonly clock: Clock;
  /** Whether a lost conversation is followed by another. */
  readonly reconnects: boolean;
  /** Whether the server may have sessions, which it can forget. */
  readonly hasSessions: boolean;
  readonly onLost: (reason: ClosedError) => void;
}

/**
 * The conversation with one server, begun again when it ended. Requests that need it at the same time share one. After one
 * that failed or was short, the next waits, longer each time, so that a server that cannot stay up is not overwhelmed.
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

  /** The current conversation, or the next. */
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

  /** Begins an expired session again, once. The request that was refused was not carried out, so it is sent again. */
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

  /** Tries again after a sign-in, a few times at most: some servers refuse every token. */
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

/** The same failure as `not_sent`: another request or the handshake failed, before this request was sent. */
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
