import { type RpcError, ScopeError } from "@junctor/core/errors";
import type { RawJson } from "@junctor/core/json";
import type { Authenticated } from "./authenticate.ts";
import { toChallenge } from "./challenge.ts";
import type { Endpoint } from "./endpoint.ts";
import { type HttpHeaders, type HttpRequest, refuse, refuseKey, type Reply, sendJson } from "./reply.ts";

/** Refuses a request whose sender was not found. */
export function refuseCaller(reply: Reply, known: Authenticated, { header }: HttpRequest): void {
  if (typeof known !== "object" || known === null || !("refused" in known))
    return refuseKey(reply, header("authorization") !== undefined);
  const { refused, text, challenge } = known;
  const headers = {
    ...(challenge === undefined ? {} : { "www-authenticate": challenge }),
    ...(refused === 503 ? { "retry-after": "5" } : {}),
  };
  refuse(reply, refused, text, { headers });
}

/** The headers of the answer to a caller whose token lacks scopes; undefined for any other error. */
export function scopeHeaders(
  error: RpcError,
  path: string,
  { challengeFor }: Pick<Endpoint, "challengeFor">,
): HttpHeaders | undefined {
  if (!(error.cause instanceof ScopeError)) return undefined;
  const { scopes } = error.cause;
  const plain = { error: "insufficient_scope", metadataUrl: undefined, scopes } as const;
  const challenge = challengeFor?.(scopes, path) ?? toChallenge(plain);
  return { "content-type": "application/json", "www-authenticate": challenge };
}

/** What a page of any origin may do with an open document: read it. */
const openHeaders = {
  "content-type": "application/json",
  "access-control-allow-origin": "*",
  "access-control-allow-methods": "GET",
  "access-control-allow-headers": "mcp-protocol-version",
  "cache-control": "max-age=300",
} as const;

/**
 * Answers a request for a document that every page may read, whatever its `Host` and `Origin`: the document does not depend on
 * them. False when there is no such document.
 */
export function sendDocument(
  { method, path }: HttpRequest,
  reply: Reply,
  documentAt: (path: string) => RawJson | undefined,
): boolean {
  const document = documentAt(path);
  if (document === undefined) return false;
  if (method === "OPTIONS") reply.send(204, openHeaders);
  else if (method === "GET" || method === "HEAD") sendJson(reply, 200, document, openHeaders);
  else refuse(reply, 405, `${path} takes GET`, { headers: { allow: "GET, HEAD" } });
  return true;
}
