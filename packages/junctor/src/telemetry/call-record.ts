import { type RawJson, parseText } from "@junctor/core/json";
import type { Implementation } from "@junctor/core/mcp";
import { bounded } from "@junctor/core/provider";

/** How far a call has come. */
export type CallState = "queued" | "sent" | "asked" | "parked" | "answered" | "ended";

/** One step of a call, and how many milliseconds after its beginning it was taken. */
interface CallStep {
  readonly state: CallState;
  readonly atMs: number;
}

/** The facts of a call while it is underway and a while after: no arguments, no result. */
export interface CallRecord {
  readonly number: number;
  readonly method: string;
  readonly caller: string | undefined;
  /** What the client calls itself. */
  readonly client: string | undefined;
  readonly era: "modern" | "legacy";
  readonly isFromPage: boolean;
  /** By the monotonic clock, with fractions. */
  readonly startedAt: number;
  /** The params of the request; undefined once it has ended. */
  params: RawJson | undefined;
  /** A result of its server that does not say that the tool failed; undefined once the request has ended. */
  sound: RawJson | undefined;
  /** The name or URI that the caller used, once it was found or the request has ended; {@link nameOf} has it before. */
  name: string | undefined;
  server: string | undefined;
  ownName: string | undefined;
  upstreamEra: "modern" | "legacy" | undefined;
  state: CallState;
  /** When it was sent to its server, if that was its first step. */
  sentAt: number | undefined;
  /** The steps between that one and its end. Most calls have none. */
  steps: CallStep[] | undefined;
  outcome: ("ok" | "tool_error" | "input_required" | "task" | "cancelled" | "refused" | "failed") | undefined;
  code: string | undefined;
  delivery: string | undefined;
  /** Why it failed, in words. */
  reason: string | undefined;
  endedAt: number | undefined;
  /** The bytes of its last round. */
  bytesIn: number;
  bytesOut: number;
  traceId: string | undefined;
  /** JSON text, where it is recorded. */
  args: string | undefined;
  result: string | undefined;
  /** Its place among the calls that are underway. */
  place: number;
  /** The state that the reader of changes last saw. */
  lastSeenState: CallState | undefined;
}

/** The record of a call that begins. */
export function createRecord(
  begun: Pick<
    CallRecord,
    "number" | "method" | "params" | "caller" | "client" | "era" | "isFromPage" | "startedAt"
  >,
): CallRecord {
  return {
    number: begun.number,
    method: begun.method,
    caller: begun.caller,
    client: begun.client,
    era: begun.era,
    isFromPage: begun.isFromPage,
    startedAt: begun.startedAt,
    params: begun.params,
    sound: undefined,
    name: undefined,
    server: undefined,
    ownName: undefined,
    upstreamEra: undefined,
    state: "queued",
    sentAt: undefined,
    steps: undefined,
    outcome: undefined,
    code: undefined,
    delivery: undefined,
    reason: undefined,
    endedAt: undefined,
    bytesIn: 0,
    bytesOut: 0,
    traceId: undefined,
    args: undefined,
    result: undefined,
    place: 0,
    lastSeenState: undefined,
  };
}

/** The id of a call, as people see it. */
export function idOf({ number }: Pick<CallRecord, "number">): string {
  return `c${number}`;
}

/** The name or URI that the caller used; undefined for a request without one. */
export function nameOf({ name, params }: Pick<CallRecord, "name" | "params">): string | undefined {
  if (name !== undefined) return name;
  const text = params?.textOf("name") ?? params?.textOf("uri");
  return text?.charCodeAt(0) === 0x22 ? shortened(parseText(text) as string) : undefined;
}

const clients = new WeakMap<Implementation, string>();

/** What a client calls itself. Nearly all requests of a client bring the same object. */
export function clientName(info: Implementation): string {
  let name = clients.get(info);
  if (name === undefined) {
    name = shortened(`${info.name} ${info.version}`);
    clients.set(info, name);
  }
  return name;
}

/** A text that others chose, cut if it is long. A part of a string keeps all of it in memory, so it is copied. */
export function shortened(text: string): string {
  return text.length <= 256 ? text : Buffer.from(bounded(text)).toString();
}

/** The steps of a call, in the order they were taken. */
export function stepsOf({ startedAt, sentAt, steps = [], endedAt }: CallRecord): readonly CallStep[] {
  const at = (state: CallState, time: number | undefined): readonly CallStep[] =>
    time === undefined ? [] : [{ state, atMs: time - startedAt }];
  return [{ state: "queued", atMs: 0 }, ...at("sent", sentAt), ...steps, ...at("ended", endedAt)];
}
