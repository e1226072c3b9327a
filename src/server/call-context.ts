import type { Awaitable } from "../async/awaitable.ts";
import { RawJson } from "../json/raw.ts";
import type { Request } from "../jsonrpc/message.ts";
import { metaOf } from "../mcp/envelope.ts";
import type { Era, ModernEra } from "../mcp/era.ts";
import { newestLegacyRevision, type Revision } from "../mcp/revision.ts";
import type { WireContext } from "../mcp/server.ts";
import type { Handshake } from "../mcp/session.ts";
import { type LogLevel, logLevels } from "../mcp/types.ts";
import type { CallContext, CallEvent } from "../tools/context.ts";
import { createAsk, createVisited } from "./ask.ts";

/** The revision a caller reads its results in. */
export function revisionOf(era: Era): Revision {
  return era.kind === "modern" ? era.revision : (era.session?.handshake.revision ?? newestLegacyRevision);
}

/**
 * What a provider gets to know of a request, whatever its era. Nothing is worked out before it is asked for: most tools
 * look at none of it.
 */
export class ServedContext implements CallContext {
  // Not #private: `deriveContext` makes objects that inherit from this one.
  private readonly request: Request;
  private readonly wire: WireContext;
  private readonly mintsTokens: boolean;
  private knownMeta: RawJson | undefined;
  private sendProgress: ((event: Progress) => Awaitable<void>) | undefined;

  constructor(request: Request, wire: WireContext, mintsTokens: boolean) {
    this.request = request;
    this.wire = wire;
    this.mintsTokens = mintsTokens;
  }

  get signal(): AbortSignal {
    return this.wire.signal;
  }
  get cancellation(): CallContext["cancellation"] {
    return this.wire.cancellation;
  }
  get caller(): string | undefined {
    return this.wire.caller;
  }
  get headers(): CallContext["headers"] {
    return this.wire.headers;
  }
  get revision(): Revision {
    return revisionOf(this.wire.era);
  }
  get capabilities(): CallContext["capabilities"] {
    return factsOf(this.wire.era)?.capabilities ?? {};
  }
  get clientInfo(): CallContext["clientInfo"] {
    return factsOf(this.wire.era)?.clientInfo;
  }
  get meta(): RawJson | undefined {
    this.knownMeta ??= metaOf(this.request.params);
    return this.knownMeta;
  }
  get wantsProgress(): boolean {
    return this.mintsTokens || this.meta?.has("progressToken") === true;
  }
  get logLevel(): LogLevel | undefined {
    return wantedLevel(this.wire.era);
  }
  get session(): object | undefined {
    return this.wire.era.kind === "legacy" ? this.wire.era.session : undefined;
  }
  get ask(): CallContext["ask"] {
    return createAsk(this.wire);
  }
  get visited(): CallContext["visited"] {
    return createVisited(this.wire);
  }

  // Getters, so that what is taken out of the context still works.
  get release(): CallContext["release"] {
    return async () => this.wire.release?.();
  }
  get emit(): CallContext["emit"] {
    return (event) => {
      const told = this.tell(event);
      // A tool that does not wait for this must not end the process when it fails; one that waits still hears of it.
      told.catch(() => {});
      return told;
    };
  }

  private async tell(event: CallEvent): Promise<void> {
    if (event.kind === "log") {
      if (!wantsLog(this.wire.era, event.level)) return;
      return this.wire.notify("notifications/message", toLogParams(event));
    }
    this.sendProgress ??= this.createSender();
    return this.sendProgress(event);
  }

  /** Callers that sent no token want no progress, unless the server is told to send it anyway. */
  private createSender(): (event: Progress) => Awaitable<void> {
    const token = tokenOf(this.meta) ?? (this.mintsTokens ? mintToken() : undefined);
    return token === undefined ? () => {} : createProgress(this.wire, token);
  }
}

function factsOf(era: Era): ModernEra | Handshake | undefined {
  return era.kind === "modern" ? era : era.session?.handshake;
}

type Progress = Extract<CallEvent, { kind: "progress" }>;
type Log = Extract<CallEvent, { kind: "log" }>;

/** The caller's progress token, as it was spelled. What is neither a string nor a number is none. */
function tokenOf(meta: RawJson | undefined): string | undefined {
  const token = meta?.at("progressToken");
  return token?.kind === "string" || token?.kind === "number" ? token.text : undefined;
}

/** A little more: less than any step a tool would report, but a different number. */
function nudge(progress: number): number {
  return progress + Math.max(1e-6, Math.abs(progress) * Number.EPSILON);
}

/**
 * Progress must grow with every notification. Events without a number count on; one that does not grow is nudged if it
 * has something to say, and dropped if not.
 */
function createProgress(wire: WireContext, token: string): (event: Progress) => Awaitable<void> {
  let last: number | undefined;
  let isExplicit = false;
  const next = (event: Progress): number | undefined => {
    if (event.progress !== undefined) {
      isExplicit = true;
      if (last === undefined || event.progress > last) return event.progress;
      return event.message === undefined ? undefined : nudge(last);
    }
    if (last === undefined) return 1;
    return isExplicit ? nudge(last) : last + 1;
  };
  return (given) => {
    const event = withFiniteNumbers(given);
    const progress = next(event);
    if (progress === undefined) return;
    last = progress;
    const total = event.total === undefined ? "" : `,"total":${event.total}`;
    const message = event.message === undefined ? "" : `,"message":${JSON.stringify(event.message)}`;
    const params = RawJson.fromText(`{"progressToken":${token},"progress":${progress}${total}${message}}`);
    return wire.notify("notifications/progress", params);
  };
}

/** A division by zero in a tool must not become a frame that is not JSON. */
function withFiniteNumbers(event: Progress): Progress {
  const { progress, total, ...rest } = event;
  if (!isUnwritable(progress) && !isUnwritable(total)) return event;
  return {
    ...rest,
    ...(progress === undefined || isUnwritable(progress) ? {} : { progress }),
    ...(total === undefined || isUnwritable(total) ? {} : { total }),
  };
}

function isUnwritable(value: number | undefined): boolean {
  return value !== undefined && !Number.isFinite(value);
}

/** Legacy clients that set no level get what they would want to see; modern ones get only what they asked for. */
function wantsLog(era: Era, level: LogLevel): boolean {
  const wanted = wantedLevel(era);
  return wanted !== undefined && logLevels.indexOf(level) >= logLevels.indexOf(wanted);
}

function wantedLevel(era: Era): LogLevel | undefined {
  return era.kind === "modern" ? era.logLevel : (era.session?.logLevel ?? "info");
}

function toLogParams({ level, data, logger }: Log): RawJson {
  return RawJson.fromValue({ level, ...(logger === undefined ? {} : { logger }), data: data ?? null });
}

function mintToken(): string {
  return JSON.stringify(crypto.randomUUID());
}
