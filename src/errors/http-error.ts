import type { Delivery } from "./delivery.ts";

/** A server answered with an HTTP status that carries no MCP message. */
export class HttpError extends Error {
  override readonly name = "HttpError";
  readonly code = "client.http";
  readonly status: number;
  readonly url: string;
  readonly delivery: Delivery;

  constructor(status: number, url: string, excerpt: string) {
    super(`${url} answered ${status}${advice(status)}${excerpt === "" ? "" : `: ${excerpt}`}`);
    this.status = status;
    this.url = url;
    this.delivery = status >= 500 ? "outcome_unknown" : "answered";
  }
}

function advice(status: number): string {
  switch (status) {
    case 401:
      return " (it wants authentication: pass headers: { authorization: … })";
    case 403:
      return " (these credentials are not enough)";
    case 404:
    case 405:
      return " (is this the URL of an MCP endpoint?)";
    default:
      return "";
  }
}
