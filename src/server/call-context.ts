import type { Awaitable } from "../async/awaitable.ts";
import { RawJson } from "../json/raw.ts";
import type { Request } from "../jsonrpc/message.ts";
import { type Era, metaOf } from "../mcp/era.ts";
import { newestLegacyRevision, type Revision } from "../mcp/revision.ts";
import type { WireContext } from "../mcp/server.ts";
import { type LogLevel, logLevels } from "../mcp/types.ts";
import { type CallContext, type CallEvent, nothing, toContext } from "../tools/context.ts";
import { createAsk, createVisited } from "./interaction.ts";

/** The revision a caller reads its results in. */
export function revisionOf(era: Era): Revision {
  return era.kind === "modern" ? era.revision : (era.session?.handshake.revision ?? newestLegacyRevision);
}

/** The context of a request, whatever its era. */
export function createContext(request: Request, wire: WireContext, mintsTokens: boolean): CallContext {
  const { era } = wire;
  const sender = era.kind === "modern" ? era : era.session?.handshake;
  const meta = metaOf(request.params);
  return toContext({
    cancellation: wire.cancellation,
    caller: wire.caller,
    revision: revisionOf(era),
    capabilities: sender?.capabilities ?? {},
    clientInfo: sender?.clientInfo,
    meta,
    headers: wire.headers,
    wantsProgress: mintsTokens || meta?.has("progressToken") === true,
    logLevel: wantedLevel(era),
    session: era.kind === "modern" ? undefined : era.session,
    ask: era.kind === "modern" ? undefined : createAsk(wire),
    visited: era.kind === "modern" ? undefined : createVisited(wire),
    emit: createEmit(wire, meta, mintsTokens),
    release: wire.release === undefined ? nothing : async () => wire.release?.(),
  });
}

function createEmit(wire: WireContext, meta: RawJson | undefined, mintsTokens: boolean): CallContext["emit"] {
  let sendProgress: ((event: ProgressEvent) => Awaitable<void>) | undefined;
  const tell = async (event: CallEvent): Promise<void> => {
    if (event.kind === "log") {
      if (wantsLog(wire.era, event.level)) await wire.notify("notifications/message", toLogParams(event));
      return;
    }
    // Callers that sent no token want no progress, unless the server is told to send it anyway.
    sendProgress ??= createProgress(wire, tokenOf(meta) ?? (mintsTokens ? mintToken() : undefined));
    await sendProgress(event);
  };
  return (event) => {
    const told = tell(event);
    // A tool that does not wait for this must not end the process when it fails; one that waits still hears of it.
    told.catch(() => {});
    return told;
  };
}

type ProgressEvent = Extract<CallEvent, { kind: "progress" }>;
type LogEvent = Extract<CallEvent, { kind: "log" }>;

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
 * ProgressEvent must grow with every notification. Events without a number count on; one that does not grow is nudged if it
 * has something to say, and dropped if not.
 */
function createProgress(
  wire: WireContext,
  token: string | undefined,
): (event: ProgressEvent) => Awaitable<void> {
  if (token === undefined) return () => {};
  let last: number | undefined;
  let isExplicit = false;
  const next = (event: ProgressEvent): number | undefined => {
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
function withFiniteNumbers(event: ProgressEvent): ProgressEvent {
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

function toLogParams({ level, data, logger }: LogEvent): RawJson {
  return RawJson.fromValue({ level, ...(logger === undefined ? {} : { logger }), data: data ?? null });
}

function mintToken(): string {
  return JSON.stringify(crypto.randomUUID());
}
