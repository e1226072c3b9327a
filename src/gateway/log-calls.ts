import type { Clock } from "../async/clock.ts";
import { bounded, describeEnd } from "../audit/call-end.ts";
import { isModernRevision } from "../mcp/revision.ts";
import type { OwnerOf } from "../middleware/audit-log.ts";
import type { Middleware } from "../tools/middleware.ts";
import type { ToolCall } from "../tools/provider.ts";
import type { GatewayLog } from "./log.ts";

interface LogCallsOptions {
  readonly log: GatewayLog;
  readonly clock: Clock;
  readonly ownerOf: OwnerOf;
}

/** Logs each call when it has ended, at `debug`. Not to be put around calls where that level is not written: it costs a little. */
export function logCalls({ log, clock, ownerOf }: LogCallsOptions): Middleware {
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
      const tool = bounded(call.name);
      const { outcome, code, delivery } = describeEnd(end);
      const facts = {
        tool,
        ...(call.kind === undefined ? {} : { kind: call.kind }),
        server: ownerOf(call.name, context, call.kind)?.server,
        caller: context.caller,
        era: isModernRevision(context.revision) ? "modern" : "legacy",
        revision: context.revision,
        outcome,
        code,
        delivery,
        ms: now - (startedAt.get(call) ?? now),
      };
      log.debug(facts, `call of ${tool}: ${outcome}`);
    },
  };
}
