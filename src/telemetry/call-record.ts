/** How far a call has come. */
export type CallState = "queued" | "sent" | "asked" | "parked" | "answered" | "ended";

type CallOutcome = "ok" | "tool_error" | "input_required" | "task" | "cancelled" | "refused" | "failed";

/** One step of a call, and how many milliseconds after its beginning it was taken. */
interface CallStep {
  readonly state: CallState;
  readonly atMs: number;
}

/** The facts of a call while it is underway and a while after: no arguments, no result. */
export interface CallRecord {
  readonly number: number;
  readonly method: string;
  /** The name or URI that the caller used. */
  readonly name: string | undefined;
  readonly caller: string | undefined;
  readonly client: string | undefined;
  readonly era: "modern" | "legacy";
  readonly isFromPage: boolean;
  /** By the monotonic clock, with fractions. */
  readonly startedAt: number;
  server: string | undefined;
  ownName: string | undefined;
  upstreamEra: "modern" | "legacy" | undefined;
  state: CallState;
  /** When it was sent to its server, if that was its first step. */
  sentAt: number | undefined;
  /** The steps between that one and its end. Most calls have none. */
  steps: CallStep[] | undefined;
  outcome: CallOutcome | undefined;
  code: string | undefined;
  delivery: string | undefined;
  endedAt: number | undefined;
  /** Of its last round. */
  bytesIn: number;
  bytesOut: number;
  traceId: string | undefined;
  /** JSON text, where it is recorded. */
  args: string | undefined;
  result: string | undefined;
  /** Its place among the calls that are underway. */
  place: number;
  /** The state that the reader of changes was told of. */
  told: CallState | undefined;
}

/** The facts of a call when it begins. */
type CallBeginning = Pick<
  CallRecord,
  "number" | "method" | "name" | "caller" | "client" | "era" | "isFromPage" | "startedAt"
>;

/** The record of a call that begins. */
export function createRecord(begun: CallBeginning): CallRecord {
  return {
    number: begun.number,
    method: begun.method,
    name: begun.name,
    caller: begun.caller,
    client: begun.client,
    era: begun.era,
    isFromPage: begun.isFromPage,
    startedAt: begun.startedAt,
    server: undefined,
    ownName: undefined,
    upstreamEra: undefined,
    state: "queued",
    sentAt: undefined,
    steps: undefined,
    outcome: undefined,
    code: undefined,
    delivery: undefined,
    endedAt: undefined,
    bytesIn: 0,
    bytesOut: 0,
    traceId: undefined,
    args: undefined,
    result: undefined,
    place: 0,
    told: undefined,
  };
}

/** Names a call, to people. */
export function idOf({ number }: Pick<CallRecord, "number">): string {
  return `c${number}`;
}

/** The steps of a call, in the order they were taken. */
export function stepsOf({ startedAt, sentAt, steps = [], endedAt }: CallRecord): readonly CallStep[] {
  const at = (state: CallState, time: number | undefined): readonly CallStep[] =>
    time === undefined ? [] : [{ state, atMs: time - startedAt }];
  return [{ state: "queued", atMs: 0 }, ...at("sent", sentAt), ...steps, ...at("ended", endedAt)];
}
