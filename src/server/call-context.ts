import { RawJson } from "../json/raw.ts";
import type { Request } from "../jsonrpc/message.ts";
import { metaOf } from "../mcp/envelope.ts";
import type { Era } from "../mcp/era.ts";
import { newestLegacyRevision, type Revision } from "../mcp/revision.ts";
import type { WireContext } from "../mcp/server.ts";
import { type LogLevel, logLevels } from "../mcp/types.ts";
import type { CallContext, CallEvent } from "../tools/context.ts";

/** The revision a caller reads its results in. */
export function revisionOf(era: Era): Revision {
  return era.kind === "modern" ? era.revision : (era.session?.handshake.revision ?? newestLegacyRevision);
}

/** What a provider gets to know of a request, whatever its era. */
export function toCallContext(request: Request, wire: WireContext, mintsTokens: boolean): CallContext {
  const { era, signal, caller, headers } = wire;
  const facts = era.kind === "modern" ? era : era.session?.handshake;
  const meta = metaOf(request.params);
  const token = meta?.at("progressToken")?.text ?? (mintsTokens ? mintToken() : undefined);
  const sendProgress = token === undefined ? undefined : createProgress(wire, token);
  return {
    signal,
    caller,
    revision: revisionOf(era),
    capabilities: facts?.capabilities ?? {},
    clientInfo: facts?.clientInfo,
    meta,
    headers,
    release: async () => wire.release?.(),
    emit: async (event) => {
      if (event.kind === "progress") await sendProgress?.(event);
      else if (wantsLog(era, event.level)) await wire.notify("notifications/message", toLogParams(event));
    },
  };
}

type Progress = Extract<CallEvent, { kind: "progress" }>;
type Log = Extract<CallEvent, { kind: "log" }>;

/** Smaller than any step a tool would report, and large enough to be a different number. */
const nudge = 1e-6;

/**
 * Progress must grow with every notification. Events without a number count on; one that does not grow is nudged if it
 * has something to say, and dropped if not.
 */
function createProgress(wire: WireContext, token: string): (event: Progress) => Promise<void> {
  let last: number | undefined;
  let isExplicit = false;
  const next = (event: Progress): number | undefined => {
    if (event.progress !== undefined) {
      isExplicit = true;
      if (last === undefined || event.progress > last) return event.progress;
      return event.message === undefined ? undefined : last + nudge;
    }
    if (last === undefined) return 1;
    return isExplicit ? last + nudge : last + 1;
  };
  return async (event) => {
    const progress = next(event);
    if (progress === undefined) return;
    last = progress;
    const total = event.total === undefined ? "" : `,"total":${event.total}`;
    const message = event.message === undefined ? "" : `,"message":${JSON.stringify(event.message)}`;
    const params = RawJson.fromText(`{"progressToken":${token},"progress":${progress}${total}${message}}`);
    await wire.notify("notifications/progress", params);
  };
}

/** Legacy clients that set no level get what they would want to see; modern ones get only what they asked for. */
function wantsLog(era: Era, level: LogLevel): boolean {
  const wanted = era.kind === "modern" ? era.logLevel : (era.session?.logLevel ?? "info");
  return wanted !== undefined && logLevels.indexOf(level) >= logLevels.indexOf(wanted);
}

function toLogParams({ level, data, logger }: Log): RawJson {
  return RawJson.fromValue({ level, ...(logger === undefined ? {} : { logger }), data: data ?? null });
}

function mintToken(): string {
  return JSON.stringify(crypto.randomUUID());
}
