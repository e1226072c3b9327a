import { ClosedError } from "../errors/closed-error.ts";
import { TimeoutError } from "../errors/timeout-error.ts";

/** The same failure, met before the request in question was sent: its fate is known, whatever became of what met it. */
export function toNotSent(error: unknown): unknown {
  if (error instanceof ClosedError && error.delivery !== "not_sent")
    return new ClosedError("not_sent", "the server was lost before", { cause: error });
  if (error instanceof TimeoutError && error.delivery !== "not_sent")
    return new TimeoutError(error.kind, error.timeoutMs, "not_sent");
  return error;
}
