import type { Delivery } from "../errors/delivery.ts";
import { TimeoutError } from "../errors/timeout-error.ts";
import { ToolError } from "../errors/tool-error.ts";
import type { CallEnd } from "../tools/middleware.ts";
import type { AuditRecord } from "./audit.ts";

/** What a record says about how a call ended. */
export function describeEnd(end: CallEnd): Pick<AuditRecord, "outcome" | "delivery"> {
  switch (end.kind) {
    case "complete": {
      const isError = end.result.at("isError")?.value === true;
      return { outcome: isError ? "tool_error" : "ok", delivery: undefined };
    }
    case "input_required":
      return { outcome: end.kind, delivery: undefined };
    case "failed": {
      const { code, delivery } = (causeOf(end.error) ?? {}) as { code?: unknown; delivery?: Delivery };
      return { outcome: typeof code === "string" ? code : "unknown", delivery };
    }
  }
}

/** A call that was stopped for its time limit is told to the model as a `ToolError`; the record has what happened. */
function causeOf(error: unknown): unknown {
  return error instanceof ToolError && error.cause instanceof TimeoutError ? error.cause : error;
}
