import type { Delivery } from "./delivery.ts";

/** Which clock ran out: nothing came for too long (`idle`), or the whole took too long (`total`). */
export type TimeoutKind = "idle" | "total";

/** A request took too long and was cancelled. */
export class TimeoutError extends Error {
  override readonly name = "TimeoutError";
  readonly code = "client.timeout";
  readonly kind: TimeoutKind;
  readonly timeoutMs: number;
  readonly delivery: Delivery;

  constructor(kind: TimeoutKind, timeoutMs: number, delivery: Delivery = "outcome_unknown") {
    super(
      kind === "idle"
        ? `Nothing came for ${timeoutMs} ms, and the request was cancelled. Raise timeoutMs if it may take longer.`
        : `The request was not done after ${timeoutMs} ms in all and was cancelled. Raise maxTotalMs if it may take longer.`,
    );
    this.kind = kind;
    this.timeoutMs = timeoutMs;
    this.delivery = delivery;
  }
}
