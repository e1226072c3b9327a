import type { Delivery } from "./delivery.ts";

/** Why a server behind the gateway did not answer. */
export type UpstreamReason = "unavailable" | "lost" | "timeout" | "busy" | "failed" | "abandoned";

interface UpstreamFacts {
  /** The name of the server. */
  readonly server: string;
  readonly delivery: Delivery;
  readonly cause?: unknown;
}

/** A server behind the gateway could not be asked, or did not answer. */
export class UpstreamError extends Error {
  override readonly name = "UpstreamError";
  readonly code: `upstream.${UpstreamReason}`;
  readonly server: string;
  readonly delivery: Delivery;

  constructor(reason: UpstreamReason, text: string, { server, delivery, cause }: UpstreamFacts) {
    super(text, cause === undefined ? undefined : { cause });
    this.code = `upstream.${reason}`;
    this.server = server;
    this.delivery = delivery;
  }
}
