import type { Delivery } from "./delivery.ts";

/** The channel ended, or was closed, before a request on it was answered. */
export class ClosedError extends Error {
  override readonly name = "ClosedError";
  readonly code = "channel.closed";
  readonly delivery: Exclude<Delivery, "answered">;

  constructor(delivery: Exclude<Delivery, "answered">, reason: string, options?: ErrorOptions) {
    super(
      delivery === "not_sent"
        ? `The request was not sent: ${reason}.`
        : `The channel closed before the answer came: ${reason}. Whether the request was carried out is unknown.`,
      options,
    );
    this.delivery = delivery;
  }
}
