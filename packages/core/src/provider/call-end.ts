import {
  type Delivery,
  NotFoundError,
  ScopeError,
  TimeoutError,
  ToolError,
  ValidationError,
} from "../errors/index.ts";
import type { AuditRecord } from "./audit.ts";
import type { CallEnd } from "./middleware.ts";
import type { Operation } from "./provider.ts";

/** What a record says about how a call ended. */
export function describeEnd(
  end: CallEnd,
  operation?: Pick<Operation, "ref">,
): Pick<AuditRecord, "outcome" | "code" | "delivery"> {
  // The call goes on as a task. Its end is recorded by the first `tasks/get` that sees it.
  if (end.task !== undefined && operation?.ref === undefined)
    return { outcome: "task", code: undefined, delivery: undefined };
  switch (end.kind) {
    case "complete": {
      if (end.refusal !== undefined) return refused(end.refusal);
      const isError = end.result.at("isError")?.value === true;
      return { outcome: isError ? "tool_error" : "ok", code: undefined, delivery: undefined };
    }
    case "input_required":
      return { outcome: end.kind, code: undefined, delivery: undefined };
    case "working":
    case "cancelled":
      return { outcome: "task", code: undefined, delivery: undefined };
    case "failed": {
      const error = causeOf(end.error);
      const { code, delivery } = factsOf(error);
      // A middleware that refuses says so by a plain `ToolError`.
      if ("isRefused" in end && end.isRefused) return refused(code === "tool.failed" ? "tool.refused" : code);
      return isRefusal(error) ? refused(code) : { outcome: code, code, delivery };
    }
  }
}

function refused(code: string): Pick<AuditRecord, "outcome" | "code" | "delivery"> {
  return { outcome: "refused", code, delivery: "not_sent" };
}

/** Errors that say by themselves that nothing was called: no such tool for this caller, or arguments we would not send. */
function isRefusal(error: unknown): boolean {
  return (
    error instanceof NotFoundError ||
    error instanceof ScopeError ||
    (error instanceof ValidationError && error.subject === "arguments")
  );
}

/** A call that was stopped for its time limit ends with a `ToolError` for the model; the record has the real reason. */
function causeOf(error: unknown): unknown {
  return error instanceof ToolError && error.cause instanceof TimeoutError ? error.cause : error;
}

/** Anything can be thrown, also a value that throws when it is looked at. */
function factsOf(error: unknown): { readonly code: string; readonly delivery: Delivery | undefined } {
  try {
    const { code, delivery } = (error ?? {}) as { readonly code?: unknown; readonly delivery?: Delivery };
    return { code: typeof code === "string" ? bounded(code) : "unknown", delivery };
  } catch {
    return { code: "unknown", delivery: undefined };
  }
}

/** A name that was made up may be as long as a request; no more of it than this is recorded. */
const maxLength = 256;

/** A text that others chose, as it is recorded or logged: its first 256 characters, and no half of a surrogate pair. */
export function bounded(text: string): string {
  return text.length <= maxLength ? text : text.slice(0, maxLength).replace(/[\uD800-\uDBFF]$/, "");
}

/** The `traceparent` of a call as it is recorded; undefined for a value that is no text. */
export function toTrace(traceparent: unknown): string | undefined {
  return typeof traceparent === "string" ? bounded(traceparent) : undefined;
}
