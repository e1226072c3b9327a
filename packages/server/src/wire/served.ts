import type { Awaitable } from "@junctor/core/async";
import { prependMembers, RawJson, editMembers } from "@junctor/core/json";
import {
  declaredExtension,
  type Era,
  extensionIds,
  metaOf,
  withoutTasks,
  metaKeys,
  withoutModernMembers,
  type Revision,
  newestLegacyRevision,
  type WireContext,
  type Session,
  type CacheHints,
  type ClientCapabilities,
  type Implementation,
  type LogLevel,
  logLevels,
} from "@junctor/core/mcp";
import {
  type CallContext,
  type CallEvent,
  noopAsync,
  type Provider,
  toContext,
} from "@junctor/core/provider";
import type { Request } from "@junctor/core/rpc";
import { createAsk, createVisited } from "./interaction.ts";

/** The revision of the results for a caller. */
export function revisionOf(era: Era): Revision {
  return era.kind === "modern" ? era.revision : (era.session?.handshake.revision ?? newestLegacyRevision);
}

const noCapabilities: ClientCapabilities = {};

/** The context of a request, whatever its era. With `mintsTokens`, callers that sent no progress token get progress too. */
export function createContext(
  request: Request,
  wire: WireContext,
  provider: Provider,
  mintsTokens: boolean,
): CallContext {
  const { era } = wire;
  const sender = era.kind === "modern" ? era : era.session?.handshake;
  const meta = metaOf(request.params);
  const { capabilities = noCapabilities } = sender ?? {};
  return toContext({
    cancellation: wire.cancellation,
    caller: wire.caller,
    identity: wire.identity,
    revision: revisionOf(era),
    capabilities:
      capabilities.extensions === undefined ? capabilities : withServedTasks(capabilities, wire, provider),
    clientInfo: sender?.clientInfo,
    meta,
    headers: wire.headers,
    wantsProgress: mintsTokens || meta?.has("progressToken") === true,
    logLevel: wantedLevel(era),
    session: era.kind === "modern" ? undefined : era.session,
    ask: era.kind === "modern" ? undefined : createAsk(wire),
    visited: era.kind === "modern" ? undefined : createVisited(wire),
    emit: createEmit(wire, meta, mintsTokens),
    observation: wire.observation,
    release: wire.release === undefined ? noopAsync : async () => wire.release?.(),
  });
}

/** Removes tasks from the capabilities, unless the provider has tasks and the caller is modern. */
function withServedTasks(
  capabilities: ClientCapabilities,
  { era, caller, identity }: WireContext,
  provider: Provider,
): ClientCapabilities {
  if (declaredExtension(capabilities, extensionIds.tasks) === undefined) return capabilities;
  const callerInfo = { caller, identity, capabilities, revision: revisionOf(era), session: undefined };
  const isServed = era.kind === "modern" && provider.offers(callerInfo).serves("tasks/get");
  return isServed ? capabilities : withoutTasks(capabilities);
}

function createEmit(wire: WireContext, meta: RawJson | undefined, mintsTokens: boolean): CallContext["emit"] {
  let sendProgress: ((event: ProgressEvent) => Awaitable<void>) | undefined;
  const tell = async (event: CallEvent): Promise<void> => {
    if (event.kind === "log") {
      if (wantsLog(wire.era, event.level)) await wire.notify("notifications/message", toLogParams(event));
      return;
    }
    // A caller that sent no token gets no progress, unless the server mints tokens.
    sendProgress ??= createProgress(wire, tokenOf(meta) ?? (mintsTokens ? mintToken() : undefined));
    await sendProgress(event);
  };
  return (event) => {
    const emitted = tell(event);
    // If a tool does not await this, a failure must not end the process. A tool that awaits it still gets the error.
    emitted.catch(() => {});
    return emitted;
  };
}

type ProgressEvent = Extract<CallEvent, { kind: "progress" }>;
type LogEvent = Extract<CallEvent, { kind: "log" }>;

/** The text of the caller's progress token. A token is a string or a number; anything else is ignored. */
function tokenOf(meta: RawJson | undefined): string | undefined {
  const token = meta?.at("progressToken");
  return token?.kind === "string" || token?.kind === "number" ? token.text : undefined;
}

/** A slightly larger number. The step is smaller than any that a tool would report. */
function nudge(progress: number): number {
  return progress + Math.max(1e-6, Math.abs(progress) * Number.EPSILON);
}

/**
 * `progress` must grow with every notification. An event without a number gets the next one. An event whose number does not
 * grow is nudged if it has a message, and dropped if not.
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
  return (emitted) => {
    const event = withFiniteNumbers(emitted);
    const progress = next(event);
    if (progress === undefined) return;
    last = progress;
    const total = event.total === undefined ? "" : `,"total":${event.total}`;
    const message = event.message === undefined ? "" : `,"message":${JSON.stringify(event.message)}`;
    const params = RawJson.fromText(`{"progressToken":${token},"progress":${progress}${total}${message}}`);
    return wire.notify("notifications/progress", params);
  };
}

/** Drops NaN and Infinity, which JSON cannot hold: a tool may have divided by zero. */
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

/** Whether a client gets log messages of a level: a legacy client that set no level gets `info`, a modern one only what it asked for. */
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

/** One request on its way through the method table. */
export interface Served {
  readonly request: Request;
  readonly params: RawJson | undefined;
  readonly wire: WireContext;
  readonly context: CallContext;
}

/** The legacy session a request belongs to. */
export function sessionOf({ wire: { era } }: Served): Session | undefined {
  return era.kind === "legacy" ? era.session : undefined;
}

/** The empty result. */
export const empty: RawJson = RawJson.fromText("{}");

/** Serves one method. Its result is sent unchanged. */
export type Serve = (served: Served) => Awaitable<RawJson>;

/** Makes a result ready for its era: a modern one has `resultType` and the server's info, a legacy one has neither. */
export type Finish = (result: RawJson, era: Era, hints?: CacheHints) => RawJson;

/** The members of a finished result that a provider may have set already. */
const ownMembers = ["resultType", "_meta", "ttlMs", "cacheScope"];

/**
 * The members that every modern result begins with are written once per server. With `passesOn`, a result of another modern
 * server keeps its own.
 */
export function createFinish(info: Implementation, passesOn = false): Finish {
  const serverInfo = `"${metaKeys.serverInfo}":${JSON.stringify(info)}`;
  const head = `"resultType":"complete","_meta":{${serverInfo}}`;
  return (result, era, hints) => {
    assertObject(result);
    if (era.kind === "legacy") return withoutModernMembers(result);
    if (passesOn && hints === undefined && result.isForeign && result.has("resultType")) return result;
    const cache = hints === undefined ? "" : `,"ttlMs":${hints.ttlMs},"cacheScope":"${hints.cacheScope}"`;
    const hasOwn = ownMembers.some((key) => result.has(key));
    return hasOwn ? merge(result, serverInfo, hints) : prependMembers(head + cache, result);
  };
}

/** The hints for a result that must not be kept: nobody said for how long, or it depends on the caller's answers (2026-07-28, multi round-trip requests). */
export const uncached: CacheHints = { ttlMs: 0, cacheScope: "private" };

/** Refuses a result that is not an object: members are put in front of its own. */
export function assertObject(result: RawJson): void {
  if (result.kind !== "object")
    throw new TypeError(`A result is an object, and the provider gave ${result.kind}`);
}

/** Adds the members that the result lacks. A `_meta` that is not an object is replaced. */
function merge(result: RawJson, serverInfo: string, hints: CacheHints | undefined): RawJson {
  const meta = result.at("_meta");
  const known = meta?.kind === "object" ? meta : RawJson.fromText("{}");
  const added: { [key: string]: RawJson } = {
    _meta: known.at(metaKeys.serverInfo) === undefined ? prependMembers(serverInfo, known) : known,
  };
  const defaults = { resultType: "complete", ...hints };
  for (const [key, value] of Object.entries(defaults)) {
    if (result.at(key) === undefined) added[key] = RawJson.fromValue(value);
  }
  return editMembers(result, added);
}
