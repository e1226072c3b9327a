import type { HttpHeaders, HttpRequest } from "./reply.ts";

/**
 * Headers that let a page of a listed origin read the answer. Everyone else is told only that the answer depends on who
 * asks, lest a cache give it to a listed origin; undefined when none is listed.
 */
export function corsHeaders(http: HttpRequest, origins: readonly string[]): HttpHeaders | undefined {
  if (origins.length === 0) return undefined;
  const origin = http.header("origin");
  if (origin === undefined || !origins.includes(origin)) return { vary: "origin" };
  return {
    "access-control-allow-origin": origin,
    "access-control-allow-methods": "GET, POST, DELETE",
    // A page may mirror any argument in a header of its own, so what it asks to send is what it may send.
    "access-control-allow-headers": http.header("access-control-request-headers") ?? "content-type",
    "access-control-expose-headers": "mcp-session-id, www-authenticate",
    vary: "origin",
  };
}

/** Whether a browser is asking what it may send. */
export function isPreflight(http: HttpRequest, origins: readonly string[]): boolean {
  return (
    http.method === "OPTIONS" &&
    origins.length > 0 &&
    http.header("access-control-request-method") !== undefined
  );
}
