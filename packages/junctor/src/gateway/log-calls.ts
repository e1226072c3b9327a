import type { Clock } from "@junctor/core/async";
import { isModernRevision } from "@junctor/core/mcp";
import { bounded, describeEnd, kindOf, type Middleware, type Operation } from "@junctor/core/provider";
import type { OwnerOf } from "@junctor/server/internal";
import type { GatewayLog } from "../log/index.ts";

interface LogCallsOptions {
  readonly log: GatewayLog;
  readonly clock: Clock;
  readonly ownerOf: OwnerOf;
}

/** Logs each call when it has ended, at `debug`. Not to be put around calls where that level is not written: it costs a little. */
export function logCalls({ log, clock, ownerOf }: LogCallsOptions): Middleware {
  const startedAt = new WeakMap<Operation, number>();
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
      const { outcome, code, delivery } = describeEnd(end, call);
      const facts = {
        tool,
        ...(kindOf(call) === "tool" ? {} : { kind: kindOf(call) }),
        server: ownerOf(call, context)?.server,
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
