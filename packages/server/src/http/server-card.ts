import { createHash } from "node:crypto";
import { legacyRevisions, modernRevisions, cardType, toCardPages, type Server } from "@junctor/core/mcp";
import { createGuard } from "./guard.ts";
import type { HttpOptions } from "./http-options.ts";
import { type HttpRequest, refuse, type Reply } from "./reply.ts";

const catalogPath = "/.well-known/ai-catalog.json";

/** A document as it is sent. */
interface Page {
  readonly body: string;
  readonly type: string;
  readonly etag: string;
}

/**
 * Serves the card at `PATH/server-card`, and a catalog with it at `/.well-known/ai-catalog.json`, to everyone: without a key, and to pages of
 * every origin. They name no tools, no extensions and no servers behind a gateway. The function says whether it answered the request.
 */
export function createServerCard(
  server: Server,
  options: HttpOptions,
): ((http: HttpRequest, reply: Reply) => boolean) | undefined {
  const { serverCard, publicUrl, path = "/mcp" } = options;
  if (serverCard === undefined) return undefined;
  if (publicUrl === undefined) throw new TypeError("serverCard: publicUrl must say where the endpoint is");
  const { card, catalog } = toCardPages(serverCard, publicUrl, [
    ...(server.serves === "legacy" ? [] : modernRevisions),
    ...(server.serves === "modern" ? [] : legacyRevisions.toReversed()),
  ]);
  const pages: ReadonlyMap<string, Page> = new Map([
    [`${path}/server-card`, toPage(card, cardType)],
    [catalogPath, toPage(catalog, "application/json")],
  ]);
  const guard = createGuard(options);
  const serve = (page: Page, http: HttpRequest, reply: Reply): void => {
    const origin = { "access-control-allow-origin": "*" };
    if (http.method !== "GET" && http.method !== "HEAD")
      return refuse(reply, 405, `${http.path} takes GET, HEAD`, {
        headers: { allow: "GET, HEAD", ...origin },
      });
    // Every page may read it; a name of ours that leads here by DNS rebinding may not.
    const header = (key: string): string | undefined => (key === "origin" ? undefined : http.header(key));
    const { method, path: at, query, hostCount, localPort } = http;
    const refusal = guard({ method, path: at, query, hostCount, localPort, header });
    if (refusal !== undefined) return refuse(reply, 403, refusal);
    const headers = { ...origin, etag: page.etag, "cache-control": "public, max-age=300" };
    if (http.header("if-none-match") === page.etag) return reply.send(304, headers);
    return reply.send(
      200,
      { ...headers, "content-type": page.type },
      http.method === "HEAD" ? undefined : page.body,
    );
  };
  return (http, reply) => {
    const page = pages.get(http.path);
    if (page !== undefined) serve(page, http, reply);
    return page !== undefined;
  };
}

function toPage(value: object, type: string): Page {
  const body = JSON.stringify(value);
  return { body, type, etag: `"${createHash("sha256").update(body).digest("hex").slice(0, 32)}"` };
}
