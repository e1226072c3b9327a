import { randomUUID } from "node:crypto";
import { type Clock, dateOf, systemClock } from "../async/clock.ts";
import { type AuditOptions, type AuditSink, createAudit } from "../audit/audit.ts";
import { bounded, describeEnd, toTrace } from "../audit/call-end.ts";
import { isModernRevision } from "../mcp/revision.ts";
import type { CallContext } from "../tools/context.ts";
import type { Middleware } from "../tools/middleware.ts";
import type { ToolCall } from "../tools/provider.ts";

export interface AuditLogOptions extends Omit<AuditOptions, "sink"> {
  /** Takes each record, such as the `sink` of `openAuditFile`. */
  readonly record: AuditSink;
  /** What the records call this server; `local` when left out. */
  readonly server?: string;
  /** Finds the server of a tool by the tool's name, for a provider that has its tools from several. */
  readonly ownerOf?: OwnerOf;
  /** Of which servers the arguments are recorded, with `redact`; of all when left out. */
  readonly recordsArguments?: (server: string) => boolean;
  readonly clock?: Clock;
}

/** The server of a tool, and what it calls the tool as far as that is known; undefined where the server is not known. */
export type OwnerOf = (
  tool: string,
  context: CallContext,
) => { readonly server: string; readonly ownName?: string } | undefined;

/**
 * Writes a record of each call, whichever way it ends: one for every round of a call that asks something. Put it first,
 * so that it sees what the others refuse. A slow sink holds a call up for `maxWaitMs` at most (50), and one that fails
 * fails no call. `era` and `revision` are those of the caller, the bytes those of arguments and result.
 *
 * @example
 * const file = await openAuditFile({ path: "calls.jsonl" });
 * withMiddleware(provider, [auditLog({ record: file.sink })]);
 */
export function auditLog(options: AuditLogOptions): Middleware {
  const { record, server = "local", ownerOf, recordsArguments, clock = systemClock, ...rest } = options;
  const audit = createAudit({ ...rest, sink: record }, clock);
  const started = new WeakMap<ToolCall, { readonly at: number; readonly owner: ReturnType<OwnerOf> }>();
  return {
    beforeCall: (call, context) => {
      // An object of this call's own, by which it is known again when it ends.
      const own = { ...call };
      started.set(own, { at: clock.now(), owner: ownerOf?.(call.name, context) });
      return own;
    },
    afterCall: (call, ended, context) => {
      const now = clock.now();
      const { at: began = now, owner: known } = started.get(call) ?? {};
      // Its server may have been listed meanwhile.
      const owner = known?.ownName === undefined ? (ownerOf?.(call.name, context) ?? known) : known;
      const end = describeEnd(ended);
      const isWanted = recordsArguments?.(owner?.server ?? server);
      return audit.record({
        time: dateOf(began, clock),
        call: randomUUID(),
        trace: toTrace(context.meta?.at("traceparent")?.value),
        caller: context.caller,
        server: owner?.server ?? server,
        tool: bounded(call.name),
        ownName: owner?.ownName,
        era: isModernRevision(context.revision) ? "modern" : "legacy",
        revision: context.revision,
        ...audit.describeArguments(call.arguments, call.name, isWanted),
        ...end,
        bytesSent: end.delivery === "not_sent" ? 0 : call.arguments.byteLength,
        bytesReceived: ended.kind === "complete" ? ended.result.byteLength : 0,
        durationMs: now - began,
      });
    },
  };
}
