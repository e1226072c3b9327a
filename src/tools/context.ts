import type { Cancellation } from "../async/cancellation.ts";
import type { RawJson } from "../json/raw.ts";
import type { HeaderLookup } from "../mcp/era.ts";
import { newestModernRevision, type Revision } from "../mcp/revision.ts";
import type { Ask, ClientCapabilities, Implementation, LogLevel } from "../mcp/types.ts";

/** Something a call tells its caller before it ends. */
export type CallEvent =
  | {
      readonly kind: "progress";
      /** Left out, the next whole number is used. */
      readonly progress?: number;
      readonly total?: number;
      readonly message?: string;
    }
  | { readonly kind: "log"; readonly level: LogLevel; readonly data: unknown; readonly logger?: string };

/** Asks whoever made a call. Aborting withdraws the question. */
export type AskCaller = (ask: Ask, signal: AbortSignal) => Promise<RawJson>;

/** What a provider knows about the call it serves, whatever the era and transport it came by. */
export interface CallContext {
  /** Aborted when the caller gives up or is gone. Stop the work, not just the waiting. */
  readonly signal: AbortSignal;
  /** The same wish, cheaper to listen to; not there where only the signal is known. */
  readonly cancellation?: Cancellation | undefined;
  /** Who is calling, as established by the transport; undefined when it is not known. */
  readonly caller: string | undefined;
  readonly revision: Revision;
  /** What this caller can be asked for. */
  readonly capabilities: ClientCapabilities;
  /** Self-reported: for display and logs, never for decisions. */
  readonly clientInfo: Implementation | undefined;
  /** The request's own `_meta`, where trace context lives. */
  readonly meta: RawJson | undefined;
  /** Mirrored headers of a modern HTTP request. */
  readonly headers: HeaderLookup | undefined;
  /** Whether the caller wants to hear of progress; what is emitted without that costs work for nobody. */
  readonly wantsProgress: boolean;
  /** The least important log messages the caller wants; undefined when it wants none. */
  readonly logLevel: LogLevel | undefined;
  /** Stands for the legacy conversation the call came in: the same object for all its calls, and for no other. */
  readonly session: object | undefined;
  /**
   * Tells the caller something now. Resolves when the transport took it, which is the backpressure; events nobody asked
   * for resolve at once.
   */
  emit(event: CallEvent): Promise<void>;
  /**
   * Lets the caller's connection go before a long wait; it comes back for the result by itself. Does nothing where that
   * is not possible, which is everywhere but for 2025-11-25 over HTTP.
   */
  release(): Promise<void>;
  /**
   * Asks the caller something while the call goes on, and resolves with the bare result; rejects with an `RpcError` when
   * the caller refuses. Undefined for callers that cannot be asked so: modern ones get `input_required` instead.
   */
  readonly ask: AskCaller | undefined;
  /**
   * Tells the caller that its user is done with a page, named by the `elicitationId` it was asked to visit it under; also
   * when the call is over. Undefined for callers that know no such notice: all but those of 2025-11-25 that can show pages.
   */
  readonly visited?: ((elicitationId: string) => void) | undefined;
}

/**
 * The same context with some things changed. A context is not a plain object (its signal is made when first asked for),
 * so spreading one loses most of it; this does not.
 */
export function deriveContext<Extra extends object>(context: CallContext, extra: Extra): CallContext & Extra {
  // Whoever replaces the signal means all of it.
  const cancellation = "signal" in extra ? { cancellation: undefined } : {};
  const own = {
    ...cancellation,
    emit: context.emit.bind(context),
    release: context.release.bind(context),
    ...extra,
  };
  // Defined, not assigned: what is inherited has getters without setters.
  return Object.create(context, Object.getOwnPropertyDescriptors(own)) as CallContext & Extra;
}

/** A context for calling a provider directly, without a wire: full capabilities are not assumed, nothing is emitted. */
export function createCallContext(overrides: Partial<CallContext> = {}): CallContext {
  return {
    signal: new AbortController().signal,
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
    emit: () => Promise.resolve(),
    release: () => Promise.resolve(),
    ...overrides,
  };
}
