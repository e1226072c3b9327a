/** Whether a request that failed may have been executed by the other side. */
export type Delivery = "not_sent" | "outcome_unknown";

/** The channel ended, or was closed, before a request on it was answered. */
export class ClosedError extends Error {
  override readonly name = "ClosedError";
  readonly code = "channel.closed";
  readonly delivery: Delivery;

  constructor(delivery: Delivery, reason: string, options?: ErrorOptions) {
    super(
      delivery === "not_sent"
        ? `The request was not sent: ${reason}.`
        : `The channel closed before the answer came: ${reason}. Whether the request was carried out is unknown.`,
      options,
    );
    this.delivery = delivery;
  }
}
