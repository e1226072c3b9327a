import type { Delivery } from "./delivery.ts";

/** A legacy server no longer knows our session. The request that met this was not carried out. */
export class SessionExpiredError extends Error {
  override readonly name = "SessionExpiredError";
  readonly code = "client.session_expired";
  readonly delivery: Delivery = "not_sent";

  constructor() {
    super("The server no longer knows this session, and a new one could not be used. Connect again.");
  }
}
