import type { Delivery } from "./delivery.ts";

/** The caller gave a request up. `cause` is the reason of its signal. */
export class AbortedError extends Error {
  override readonly name = "AbortedError";
  readonly code = "client.aborted";
  readonly delivery: Delivery;

  constructor(delivery: Delivery, cause: unknown) {
    super("The request was given up by its caller.", { cause });
    this.delivery = delivery;
  }
}
