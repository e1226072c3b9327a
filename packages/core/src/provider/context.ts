import { type Cancellation, fromSignal, LazyAbort } from "../async/index.ts";
import type { RawJson } from "../json/index.ts";
import {
  type Caller,
  type HeaderLookup,
  type Observation,
  newestModernRevision,
  type Revision,
  type Question,
  type ClientCapabilities,
  type Implementation,
  type LogLevel,
} from "../mcp/index.ts";

/** Something a call tells its caller before it ends. */
export type CallEvent =
  | {
      readonly kind: "progress";
      /** When left out, the next whole number is used. */
      readonly progress?: number;
      readonly total?: number;
      readonly message?: string;
    }
  | { readonly kind: "log"; readonly level: LogLevel; readonly data: unknown; readonly logger?: string };

/** Asks the caller. Aborting withdraws the question. */
export type AskCaller = (ask: Question, signal: AbortSignal) => Promise<RawJson>;

/**
 * What a provider knows about the call it serves, whatever the era and transport it came by. Immutable. To change some of
 * it, use {@link withContext}.
 */
export interface CallContext {
  /** Aborted when the caller gives up or is gone. Stop the work, not just the waiting. */
  readonly signal: AbortSignal;
  /** The same signal, cheaper to listen to; missing in a context that was made from a signal. */
  readonly cancellation?: Cancellation | undefined;
  /** Who is calling, as established by the transport; undefined when it is not known. */
  readonly caller: string | undefined;
  /** The same caller with all that is known of it; `caller` is its name. Undefined when nothing more is known. */
  readonly identity?: Caller | undefined;
  readonly revision: Revision;
  /** What this caller can be asked for. */
  readonly capabilities: ClientCapabilities;
  /** Self-reported: for display and logs, never for decisions. */
  readonly clientInfo: Implementation | undefined;
  /** The request's own `_meta`, where trace context lives. */
  readonly meta: RawJson | undefined;
  /** Mirrored headers of a modern HTTP request. */
  readonly headers: HeaderLookup | undefined;
  /** Whether the caller asked for progress. Otherwise, emitting progress is wasted work. */
  readonly wantsProgress: boolean;
  /** The lowest level of log messages that the caller wants; undefined when it wants no logs. */
  readonly logLevel: LogLevel | undefined;
  /** Stands for the legacy session of the call: the same object for all calls of the session, and for no other. Modern calls have none. */
  readonly session: object | undefined;
  /**
   * Tells the caller something now. Resolves when the transport took it, which is the backpressure; events the caller did
   * not ask for resolve at once.
   */
  emit(event: CallEvent): Promise<void>;
  /**
   * Closes the caller's connection before a long wait; the client comes back for the result by itself. Does nothing where that
   * is not possible, which is everywhere but for 2025-11-25 over HTTP.
   */
  release(): Promise<void>;
  /**
   * Asks the caller something in the middle of the call, and resolves with the bare result; rejects with an `RpcError` when
   * the caller refuses. Undefined for callers that cannot be asked this way: modern ones get `input_required` instead.
   */
  readonly ask: AskCaller | undefined;
  /**
   * Tells the caller that its user is done with a page, named by the `elicitationId` of its question;
   * works after the call too. Undefined for callers that know no such notice: all but those of
   * 2025-11-25 that can show pages.
   */
  readonly visited?: ((elicitationId: string) => void) | undefined;
  /** Observes the request, where the server has an observer. */
  readonly observation?: Observation | undefined;
}

/**
 * A context with some members changed or added: an ordinary copy. A `signal` among the changes
 * replaces the cancellation.
 */
export function withContext<Changes extends object>(
  context: CallContext,
  changes: Changes,
): CallContext & Changes {
  return Object.assign(toContext(context), changes);
}

/** A context for calling a provider directly, without a wire: it has no capabilities, and events are dropped. */
export function createCallContext(overrides: Partial<CallContext> = {}): CallContext {
  return toContext({
    caller: undefined,
    revision: newestModernRevision,
    capabilities: {},
    clientInfo: undefined,
    meta: undefined,
    headers: undefined,
    wantsProgress: overrides.emit !== undefined,
    logLevel: undefined,
    session: undefined,
    ask: undefined,
    visited: undefined,
    emit: noopAsync,
    release: noopAsync,
    ...overrides,
  });
}

/** Does nothing and resolves at once. */
export const noopAsync = (): Promise<void> => Promise.resolve();

/** Where there is a cancellation, the signal is made from it. */
type ContextFacts = Omit<CallContext, "signal"> & Partial<Pick<CallContext, "signal">>;

/** Everything but the signal and the cancellation it is made from. */
type Facts = { -readonly [Fact in Exclude<keyof CallContext, "signal" | "cancellation">]: CallContext[Fact] };

/** A context from all of its facts. */
export function toContext(facts: ContextFacts): CallContext {
  return new LazySignal(facts);
}

/** The members of a context that are plain data. The constructor sets each of them. */
// eslint-disable-next-line typescript/no-unsafe-declaration-merging
interface LazySignal extends Facts {}

/**
 * A context: plain data, and one accessor. The signal is made when it is first looked at, because making one for every call
 * was 9 % of a small call. So a spread copy (`{ ...context }`) has no signal; `withContext` copies keep it, and keep it lazy.
 */
class LazySignal {
  cancellation: Cancellation;

  constructor(facts: ContextFacts) {
    this.cancellation =
      facts.cancellation ?? (facts.signal === undefined ? new LazyAbort() : fromSignal(facts.signal));
    this.caller = facts.caller;
    this.identity = facts.identity;
    this.revision = facts.revision;
    this.capabilities = facts.capabilities;
    this.clientInfo = facts.clientInfo;
    this.meta = facts.meta;
    this.headers = facts.headers;
    this.wantsProgress = facts.wantsProgress;
    this.logLevel = facts.logLevel;
    this.session = facts.session;
    this.ask = facts.ask;
    this.visited = facts.visited;
    this.observation = facts.observation;
    this.emit = facts.emit;
    this.release = facts.release;
  }

  get signal(): AbortSignal {
    return this.cancellation.signal;
  }

  set signal(signal: AbortSignal) {
    this.cancellation = fromSignal(signal);
  }
}
