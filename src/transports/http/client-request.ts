import { Buffer } from "node:buffer";
import { type Dispatcher, errors as undiciErrors } from "undici";
import { ClosedError } from "../../errors/closed-error.ts";
import { HttpError } from "../../errors/http-error.ts";
import { RpcError } from "../../errors/rpc-error.ts";

/** A response whose body has not been read. */
export type HttpResponse = Dispatcher.ResponseData;

/** One HTTP request of a client. */
export interface Post {
  readonly method: "POST" | "GET" | "DELETE";
  readonly headers: Record<string, string>;
  readonly body?: string | Uint8Array;
  readonly signal?: AbortSignal;
}

/** Codes of failures before a single byte of the request was sent. */
const notSentCodes = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "UND_ERR_CONNECT_TIMEOUT",
]);

/** Sends a request. Redirects are not followed: the headers may hold credentials. Network failures are `ClosedError`s. */
export async function sendHttp(dispatcher: Dispatcher, url: URL, post: Post): Promise<HttpResponse> {
  const { method, headers, body, signal } = post;
  try {
    return await dispatcher.request({
      origin: url.origin,
      path: `${url.pathname}${url.search}`,
      method,
      headers,
      // Deadlines are the caller's; a silent stream is not a dead one.
      headersTimeout: 0,
      bodyTimeout: 0,
      ...(body === undefined ? {} : { body }),
      ...(signal === undefined ? {} : { signal }),
    });
  } catch (error) {
    signal?.throwIfAborted();
    throw toClosed(error, url);
  }
}

/** What a failure on the network means for the request it met. */
export function toClosed(error: unknown, url: URL): ClosedError {
  const code = (error as { code?: string }).code ?? "";
  const causes = error instanceof AggregateError ? error.errors : [error];
  const isNotSent = causes.every((cause) => notSentCodes.has((cause as { code?: string }).code ?? code));
  const reason = `${url.origin}: ${describe(error, code)}`;
  return new ClosedError(isNotSent ? "not_sent" : "outcome_unknown", reason, { cause: error });
}

function describe(error: unknown, code: string): string {
  if (code === "ECONNREFUSED") return "nothing listens there (connection refused)";
  if (error instanceof undiciErrors.SocketError) return "the connection was closed";
  return error instanceof Error && error.message !== "" ? error.message : code;
}

/** The whole body, up to a limit. */
export async function readAll(response: HttpResponse, maxBytes: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
    length += chunk.length;
    if (length > maxBytes)
      throw new RpcError("rpc.internal", `The server answered with more than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks);
}

/** The error for a status that is no answer, with the beginning of what the server said. */
export async function toHttpError(response: HttpResponse, url: URL): Promise<HttpError> {
  const body = await readAll(response, 64 * 1024).catch(() => new Uint8Array(0));
  return httpErrorOf(response.statusCode, url, body);
}

export function httpErrorOf(status: number, url: URL, body: Uint8Array): HttpError {
  const excerpt = Buffer.from(body).toString("utf8").replaceAll(/\s+/g, " ").trim().slice(0, 200);
  return new HttpError(status, `${url.origin}${url.pathname}`, excerpt);
}

/** The media type of a response. */
export function mediaTypeOf(response: HttpResponse): string {
  const value = response.headers["content-type"];
  return (typeof value === "string" ? value : "").split(";", 1)[0]?.trim().toLowerCase() ?? "";
}
