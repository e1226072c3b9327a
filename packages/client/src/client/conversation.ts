import {
  ending,
  type Cancellation,
  type Clock,
  createDeferred,
  type Deferred,
  LazyAbort,
  Numbered,
} from "@junctor/core/async";
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
  /** Takes progress and logs of this request; it costs the server work, so leave it out where it is not needed. */
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

/** How long a server may take to stop talking about a request that was given up. */
const strayMs = 5000;

/** Requests to one server, in the form its era wants. */
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
   * The listeners of calls that asked for log messages. A message does not say which call it belongs to, so it is delivered only while one
   * call is underway.
   */
  readonly #loggers = new Numbered<(event: CallEvent) => void>();
  /** The rank of the log level that a legacy server was asked for. */
  #logRank: number = Number.POSITIVE_INFINITY;
  #underway = 0;
  /** Requests among them that log nothing: lists, and `subscriptions/listen`, which never ends. */
  #besides = 0;
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
    const isHeard = onEvent !== undefined;
    const token = isHeard && spec.wantsProgress !== false ? this.#listeners.add(onEvent) : undefined;
    const logger = isHeard && logLevel !== undefined ? this.#loggers.add(onEvent) : undefined;
    if (isHeard && logLevel !== undefined) this.#setLogLevel(logLevel);
    const isBesides = method === "subscriptions/listen" || method.endsWith("/list");
    this.#underway++;
    if (isBesides) this.#besides++;
    const enveloped = this.#addEnvelope(params, { progressToken: token, logLevel, capabilities, meta });
    const hasEvents = onAsked !== undefined || logLevel !== undefined;
    const events = hasEvents ? () => this.#eventsOf(spec) : undefined;
    const answer = this.link.request({ method, params: enveloped, stop, about, mirrored, onSent, events });
    return ending(answer, () => {
      if (isBesides) this.#besides--;
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

  /** Takes what arrives on the link. Progress goes to the request that asked for it, everything else to the client. */
  take(notification: Notification): void {
    const { method, params } = notification;
    if (method === "notifications/progress") {
      const listener = this.#listeners.get(params?.at("progressToken")?.value as number);
      const event = listener === undefined ? undefined : toProgress(params);
      if (event !== undefined) listener?.(event);
      return;
    }
    // A legacy server that was once asked to log does so for every call. The message is certainly about one call only if no other is
    // underway and none was given up a moment ago.
    const isAboutOne =
      this.#loggers.size === 1 &&
      this.#underway - this.#besides === 1 &&
      this.#clock.now() >= this.#strayUntil;
    const event = method === "notifications/message" && isAboutOne ? toLog(params) : undefined;
    if (event === undefined) this.#notified(notification);
    else for (const logger of this.#loggers.values()) logger(event);
  }

  /** A legacy server keeps one level for all requests: the lowest that any of them wanted. */
  #setLogLevel(level: LogLevel): void {
    const rank = logLevels.indexOf(level);
    const isOffered = this.agreement.capabilities.logging !== undefined;
    if (!this.#isLegacy || !isOffered || this.#logRank <= rank) return;
    this.#logRank = rank;
    const params = RawJson.fromValue({ level });
    // The answer is not waited for; a server that refuses logs as before.
    this.link.request({ method: "logging/setLevel", params, stop: new LazyAbort() }).catch(() => {});
  }

  /** What arrives on a request's own stream is known to belong to it, where there is such a stream. */
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

/** A log message as an event; undefined when it makes no sense. */
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

/** Puts `_meta` on params: what every modern request says of its sender, and the progress token of either era. */
type AddEnvelope = (params: RawJson | undefined, extras: EnvelopeExtras) => RawJson | undefined;

const empty = RawJson.fromText("{}");

/** For modern servers. What never changes is written once. */
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

/** For legacy servers, which know all that from the handshake. */
const addLegacyEnvelope: AddEnvelope = (params, { progressToken, meta }) => {
  const token = progressToken === undefined ? undefined : `"progressToken":${progressToken}`;
  const members = token === undefined || meta === undefined ? (token ?? meta) : `${token},${meta}`;
  return members === undefined ? params : prependMembers(`"_meta":{${members}}`, params ?? empty);
};
