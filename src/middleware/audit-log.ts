import { randomUUID } from "node:crypto";
import { type Clock, systemClock } from "../async/clock.ts";
import { type AuditOptions, type AuditSink, createAudit } from "../audit/audit.ts";
import { describeEnd } from "../audit/call-end.ts";
import { isModernRevision } from "../mcp/revision.ts";
import type { CallContext } from "../tools/context.ts";
import type { Middleware } from "../tools/middleware.ts";
import type { ToolCall } from "../tools/provider.ts";

export interface AuditLogOptions extends Omit<AuditOptions, "sink"> {
  /** Takes each record, such as the `sink` of `openAuditFile`. */
  readonly record: AuditSink;
  /** What the records call this server; `local` when left out. */
  readonly server?: string;
  readonly clock?: Clock;
}

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
  const { record, server = "local", clock = systemClock, ...rest } = options;
  const audit = createAudit({ ...rest, sink: record }, clock);
  const startedAt = new WeakMap<ToolCall, number>();
  return {
    beforeCall: (call) => {
      // An object of this call's own, by which it is known again when it ends.
      const own = { ...call };
      startedAt.set(own, clock.now());
      return own;
    },
    afterCall: (call, end, context) => {
      const now = clock.now();
      const began = startedAt.get(call) ?? now;
      return audit.record({
        time: new Date(began).toISOString(),
        call: randomUUID(),
        trace: traceOf(context),
        caller: context.caller,
        server,
        tool: call.name,
        era: isModernRevision(context.revision) ? "modern" : "legacy",
        revision: context.revision,
        ...audit.describeArguments(call.arguments, call.name),
        ...describeEnd(end),
        bytesSent: call.arguments.byteLength,
        bytesReceived: end.kind === "complete" ? end.result.byteLength : 0,
        durationMs: now - began,
      });
    },
  };
}

function traceOf({ meta }: CallContext): string | undefined {
  const trace = meta?.at("traceparent")?.value;
  return typeof trace === "string" ? trace : undefined;
}
