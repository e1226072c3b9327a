import type { Delivery } from "./delivery.ts";

/** A server answered with an HTTP status that carries no MCP message. */
export class HttpError extends Error {
  override readonly name = "HttpError";
  readonly code = "client.http";
  readonly status: number;
  readonly url: string;
  /** The beginning of what the server said besides. */
  readonly excerpt: string;
  readonly delivery: Delivery;

  constructor(status: number, url: string, excerpt: string) {
    super(`${url} answered ${status}${advice[status] ?? ""}${excerpt === "" ? "" : `: ${excerpt}`}`);
    this.status = status;
    this.url = url;
    this.excerpt = excerpt;
    this.delivery = status >= 500 ? "outcome_unknown" : "answered";
  }
}

const advice: { readonly [status: number]: string } = {
  401: " (it wants authentication: pass headers: { authorization: … })",
  403: " (these credentials are not enough)",
  404: " (is this the URL of an MCP endpoint?)",
  405: " (is this the URL of an MCP endpoint?)",
};
