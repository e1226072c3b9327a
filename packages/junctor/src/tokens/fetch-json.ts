import { parseObject, readBoundedText } from "@junctor/client/internal";
import type { JsonObject } from "@junctor/core/json";

/** An issuer gave no usable answer. The message names the address and never what was sent. */
export class IssuerUnavailable extends Error {
  override readonly name = "IssuerUnavailable";
}

/** The part of `fetch` that is used here. */
export type FetchLike = (url: string, init: RequestInit) => Promise<Response>;

/** How long an issuer may take for its whole answer. */
const timeoutMs = 5000;
/** The most bytes of an answer. */
const maxBytes = 256 * 1024;

/**
 * Gets an object of an issuer that the config names. Redirects are not followed: the issuer must answer for itself. Rejects with
 * `IssuerUnavailable`.
 */
export async function fetchJson(
  url: string,
  request: {
    readonly fetch: FetchLike;
    readonly method?: "GET" | "POST";
    readonly headers?: { readonly [name: string]: string };
    readonly body?: string;
  },
): Promise<JsonObject> {
  const { fetch, method = "GET", headers = {}, body } = request;
  try {
    const response = await fetch(url, {
      method,
      headers: { accept: "application/json", ...headers },
      redirect: "error",
      signal: AbortSignal.timeout(timeoutMs),
      ...(body === undefined ? {} : { body }),
    });
    if (response.status !== 200) {
      await response.body?.cancel();
      throw new IssuerUnavailable(`${url} answered with HTTP ${response.status}`);
    }
    const chunks = (response.body ?? []) as AsyncIterable<Uint8Array>;
    const object = parseObject(await readBoundedText(chunks, maxBytes, "it"));
    if (object !== undefined) return object;
    throw new IssuerUnavailable(`${url} did not answer with a JSON object`);
  } catch (error) {
    if (error instanceof IssuerUnavailable) throw error;
    throw new IssuerUnavailable(`${url} cannot be reached: ${describe(error)}`, { cause: error });
  }
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? error.cause.message : error.message;
}
