import { Buffer } from "node:buffer";
import { errors as undiciErrors } from "undici";
import { ClosedError } from "../../../errors/closed-error.ts";
import { failureCodeOf, systemCodeOf } from "../../../errors/failure-code.ts";
import { HttpError } from "../../../errors/http-error.ts";

/** What a failure on the network means for the request it met. */
export function toClosed(error: unknown, url: URL, isSent: boolean): ClosedError {
  const reason = `${url.origin}: ${describe(error)}`;
  return new ClosedError(isSent ? "outcome_unknown" : "not_sent", reason, { cause: error });
}

/** Whether nobody listens where the request was to go. */
export function isRefused(error: unknown): boolean {
  if (error instanceof ClosedError) return isRefused(error.cause);
  if (error instanceof AggregateError) return error.errors.every(isRefused);
  return (error as { code?: unknown } | undefined)?.code === "ECONNREFUSED";
}

function describe(error: unknown): string {
  if (isRefused(error)) return "nothing listens there (connection refused)";
  if (error instanceof undiciErrors.SocketError) return "the connection was closed";
  // What OpenSSL says has line ends and names its source files.
  if (failureCodeOf(error) === "no_tls") return `it does not speak TLS (${systemCodeOf(error)})`;
  if (error instanceof Error && error.message !== "") return error.message;
  return String((error as { code?: unknown } | undefined)?.code ?? error);
}

/** The error for a status that is no answer, with the beginning of what the server said. */
export function httpErrorOf(status: number, url: URL, body: Uint8Array): HttpError {
  const excerpt = Buffer.from(body).toString("utf8").replaceAll(/\s+/g, " ").trim().slice(0, 200);
  return new HttpError(status, `${url.origin}${url.pathname}`, excerpt);
}
