import { AuthorizationError } from "@junctor/core/errors";
import { ForbiddenAddress } from "./addresses.ts";
import type { GuardedFetch } from "./guarded-fetch.ts";

export interface JsonMembers {
  readonly [key: string]: unknown;
}

interface FetchJsonOptions {
  readonly server: URL;
  readonly fetch: GuardedFetch;
  readonly signal?: AbortSignal | undefined;
}

/**
 * The JSON object at a URL; undefined when there is none. Rejects with an `AuthorizationError` when the URL must not be asked or does
 * not answer.
 */
export async function fetchJson(
  url: URL,
  { server, fetch, signal }: FetchJsonOptions,
): Promise<JsonMembers | undefined> {
  const response = await fetch(url, { signal }).catch((error: unknown) => {
    throw toAuthorizationError(error, server);
  });
  if (response.status >= 500)
    throw new AuthorizationError("unreachable", nameOf(server), `${url.host} answered ${response.status}`);
  if (response.status !== 200) return undefined;
  return parseObject(await response.text());
}

/** The object of a JSON text; undefined for any other text. */
export function parseObject(text: string): JsonMembers | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as JsonMembers)
      : undefined;
  } catch {
    return undefined;
  }
}

/** The error for a host that was not asked, or did not answer. */
export function toAuthorizationError(error: unknown, server: URL): unknown {
  if (error instanceof AuthorizationError) return error;
  if (error instanceof ForbiddenAddress)
    return new AuthorizationError("metadata", nameOf(server), error.message);
  if (error instanceof DOMException && error.name === "AbortError") return error;
  const cause = findForbidden(error);
  if (cause !== undefined) return new AuthorizationError("metadata", nameOf(server), cause.message);
  const text = `its authorization server does not answer: ${error instanceof Error ? error.message : String(error)}`;
  return new AuthorizationError("unreachable", nameOf(server), text, { cause: error });
}

function findForbidden(error: unknown): ForbiddenAddress | undefined {
  for (let each = error, depth = 0; each instanceof Error && depth < 5; each = each.cause, depth++)
    if (each instanceof ForbiddenAddress) return each;
  return undefined;
}

/** What an authorization server said when it refused: the error of RFC 6749, section 5.2, or the status. */
export function fetchFailure(status: number, answer: JsonMembers | undefined): string {
  const { error, error_description: description } = answer ?? {};
  const said = [error, description].filter((part) => typeof part === "string");
  return said.length === 0
    ? `status ${status}`
    : said
        .join(": ")
        .replaceAll(/[^\x20-\x7e]/g, " ")
        .slice(0, 300);
}

/** A server's URL without its query, which may hold a key. */
export function nameOf({ origin, pathname }: URL): string {
  return `${origin}${pathname}`;
}
