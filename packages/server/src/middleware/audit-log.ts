import { andThen, type Awaitable, type Clock, dateOf, systemClock } from "@junctor/core/async";
import { ToolError } from "@junctor/core/errors";
import { isModernRevision } from "@junctor/core/mcp";
import {
  type AuditOptions,
  type AuditRecord,
  type AuditSink,
  createAudit,
  bounded,
  describeEnd,
  toTrace,
  type CallContext,
  type CallEnd,
  type Middleware,
  kindOf,
  type Operation,
  hasTaskEnded,
} from "@junctor/core/provider";

export interface AuditLogOptions extends Omit<AuditOptions, "sink"> {
  /** Takes each record, such as the `sink` of `openAuditFile`. */
  readonly record: AuditSink;
  /** What the records call this server; `local` when left out. */
  readonly server?: string;
  /** Finds the server of a tool by the tool's name, for a provider with tools of several servers. */
  readonly ownerOf?: OwnerOf;
  /** Whether a call changes nothing. If given, every other call gets a record at its start as well. */
  readonly isReadOnly?: (call: Operation, context: CallContext) => boolean;
  /** For which servers arguments are recorded, with `redact`; for all when left out. */
  readonly recordsArguments?: (server: string) => boolean;
  /** More about the caller of a call and the decision about it. */
  readonly describe?: DescribeCall;
  readonly clock?: Clock;
}

/** Returns more about the caller of a call and the decision about it, for its record. */
export type DescribeCall = (
  call: Operation,
  context: CallContext,
  ownName: string | undefined,
) => Pick<AuditRecord, "issuer" | "clientId" | "decision" | "rule" | "credential">;

/** Finds the server of a thing, and the server's own name for it if known; undefined if the server is not known. */
export type OwnerOf = (
  operation: Pick<Operation, "part" | "name">,
  context: CallContext,
) => { readonly server: string; readonly ownName?: string } | undefined;

/** A call that has begun. */
interface Begun {
  readonly at: number;
  readonly owner: ReturnType<OwnerOf>;
  readonly id: string;
  /** Whether it has a record of its beginning. */
  readonly isRecorded: boolean;
}

/**
 * Writes a record of each call, however it ends, and of every round of a call that asks something. With `isReadOnly`, a call that may
 * change something gets a second record before it is made. A task gets one record when the call becomes the task, one for each request
 * that answers or cancels it, and one when a caller first sees its end. Put this middleware first, so that it sees what the others refuse.
 * A slow sink delays a call by at most `maxWaitMs` (50). A sink that fails does not fail the call, unless `onFailure` is `closed`. `era`
 * and `revision` are those of the caller; the bytes are those of arguments and result.
 *
 * @example
 * const file = await openAuditFile({ path: "calls.jsonl" });
 * withMiddleware(provider, [auditLog({ record: file.sink })]);
 */
export function auditLog(options: AuditLogOptions): Middleware {
  const { record, server = "local", ownerOf, recordsArguments, clock = systemClock, ...rest } = options;
  const { isReadOnly, describe, ...settings } = rest;
  const audit = createAudit({ ...settings, sink: record }, clock);
  const isClosed = options.onFailure === "closed";
  const started = new WeakMap<Operation, Begun>();
  const isNews = createTaskNews();

  const toRecord = (call: Operation, context: CallContext, begun: Begun, end: RecordEnd): AuditRecord => {
    const { name } = call;
    const kind = kindOf(call);
    const owner = begun.owner?.server ?? server;
    const isFirst = end === beginning || !begun.isRecorded;
    return {
      time: dateOf(begun.at, clock),
      call: begun.id,
      trace: toTrace(context.meta?.at("traceparent")?.value),
      caller: context.caller === undefined ? undefined : bounded(context.caller),
      ...describe?.(call, context, begun.owner?.ownName),
      server: bounded(owner),
      ...(kind === "tool" ? {} : { kind }),
      tool: bounded(name),
      ownName: begun.owner?.ownName === undefined ? undefined : bounded(begun.owner.ownName),
      era: isModernRevision(context.revision) ? "modern" : "legacy",
      revision: context.revision,
      // If there is a record of the call's beginning, it has the arguments, and the record of the end does not repeat them.
      ...audit.describeArguments(call.arguments, name, isFirst && recordsArguments?.(owner) !== false, owner),
      ...end,
    };
  };

  /** Whether a call may be made: its beginning is recorded, or its end can be. */
  const admit = (call: Operation, context: CallContext, begun: Begun): Awaitable<boolean> =>
    andThen(audit.isReady(context.caller), (isReady) =>
      isReady && begun.isRecorded ? audit.record(toRecord(call, context, begun, beginning)) : isReady,
    );

  return {
    beforeCall: (call, context) => {
      // A copy that identifies this call when it ends.
      const own = { ...call };
      const owner = ownerOf?.(call, context);
      const isRecorded = isReadOnly?.(call, context) === false;
      const begun = { at: clock.now(), owner, id: crypto.randomUUID(), isRecorded };
      started.set(own, begun);
      if (!isClosed && !isRecorded) return own;
      return andThen(admit(call, context, begun), (isAdmitted) => {
        if (isAdmitted || !isClosed) return own;
        throw new ToolError(refusal, { code: "tool.refused" });
      });
    },
    afterCall: (call, ended, context) => {
      if (!isNews(call, ended)) return undefined;
      const now = clock.now();
      const begun = started.get(call) ?? {
        at: now,
        owner: undefined,
        id: crypto.randomUUID(),
        isRecorded: false,
      };
      const { at, owner: known } = begun;
      // Its server may have been listed meanwhile.
      const owner = known?.ownName === undefined ? (ownerOf?.(call, context) ?? known) : known;
      const end = describeEnd(ended, call);
      const ending = {
        ...end,
        bytesSent: end.delivery === "not_sent" ? 0 : call.arguments.byteLength,
        bytesReceived: ended.kind === "complete" ? ended.result.byteLength : 0,
        durationMs: now - at,
      };
      const written = audit.record(toRecord(call, context, { ...begun, owner }, ending));
      return andThen(written, (isWritten) => {
        // The result of a call that changes nothing is withheld if it cannot be recorded. A call that may change something was recorded
        // at its start, and its caller must get the result.
        if (isWritten || !isClosed || begun.isRecorded || ended.kind === "failed") return undefined;
        return { kind: "failed", error: new ToolError(withheld, { code: "tool.refused" }) } satisfies CallEnd;
      });
    },
  };
}

/** The most tasks whose recorded end is remembered. */
const maxEnded = 16_384;

/** Whether a call gets a record. Of the requests for the state of a task, only failed ones do, and the first that shows the end. */
function createTaskNews(): (call: Operation, end: CallEnd) => boolean {
  const ended = new Set<string>();
  return ({ method, ref = "" }, end) => {
    if (method !== "tasks/get" || end.kind === "failed") return true;
    if (!hasTaskEnded(end) || ended.has(ref)) return false;
    ended.add(ref);
    const [oldest] = ended;
    if (ended.size > maxEnded && oldest !== undefined) ended.delete(oldest);
    return true;
  };
}

type RecordEnd = Pick<
  AuditRecord,
  "outcome" | "code" | "delivery" | "bytesSent" | "bytesReceived" | "durationMs"
>;

/** The end of a call that has just begun. */
const beginning: RecordEnd = {
  outcome: "begun",
  code: undefined,
  delivery: undefined,
  bytesSent: 0,
  bytesReceived: 0,
  durationMs: 0,
};

const advice = "Try again later, or tell the person who runs the server to look at its log.";
const refusal = `The call was refused and nothing was sent, because its audit record cannot be written. ${advice}`;
const withheld = `The answer is withheld, because its audit record cannot be written. ${advice}`;
