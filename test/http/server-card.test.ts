import { expect, test } from "vitest";
import { listenHttp } from "../../packages/server/src/http/listen-http.ts";
import { createRegistry } from "../../packages/server/src/registry/registry.ts";
import { createServer } from "../../packages/server/src/wire/server.ts";

const server = createServer(createRegistry(), { name: "x", version: "1.0.0" });
const publicUrl = "https://mcp.example.com/mcp";
const serverCard = { name: "com.example/gw", description: "Tools of Example", version: "2.0.0" };

test("the card and its catalog are for everyone, and say where the endpoint is and no more", async () => {
  const authenticate = (): undefined => undefined;
  await using listener = await listenHttp(server, { port: 0, publicUrl, serverCard, authenticate });
  const origin = `http://127.0.0.1:${listener.port}`;
  const card = await fetch(`${origin}/mcp/server-card`, { headers: { origin: "https://elsewhere.test" } });
  expect([
    card.status,
    card.headers.get("content-type"),
    card.headers.get("access-control-allow-origin"),
  ]).toEqual([200, "application/mcp-server-card+json", "*"]);
  expect(await card.json()).toEqual({
    $schema: "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json",
    name: "com.example/gw",
    version: "2.0.0",
    description: "Tools of Example",
    remotes: [
      {
        type: "streamable-http",
        url: publicUrl,
        supportedProtocolVersions: ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"],
      },
    ],
    _meta: { "dev.junctor/draft": "SEP-2127" },
  });
  const catalog = await fetch(`${origin}/.well-known/ai-catalog.json`);
  expect(await catalog.json()).toEqual({
    specVersion: "1.0",
    entries: [
      {
        identifier: "urn:air:example.com:mcp:gw",
        type: "application/mcp-server-card+json",
        url: "https://mcp.example.com/mcp/server-card",
      },
    ],
  });
  const etag = card.headers.get("etag") ?? "";
  const again = await fetch(`${origin}/mcp/server-card`, { headers: { "if-none-match": etag } });
  expect([again.status, await again.text()]).toEqual([304, ""]);
  const posted = await fetch(`${origin}/mcp/server-card`, { method: "POST", body: "{}" });
  expect([posted.status, posted.headers.get("allow")]).toEqual([405, "GET, HEAD"]);
});

test("there is no card unless the options ask for one, and none without the URL of the endpoint", async () => {
  await using listener = await listenHttp(server, { port: 0, publicUrl });
  for (const path of ["/mcp/server-card", "/.well-known/ai-catalog.json"])
    expect((await fetch(`http://127.0.0.1:${listener.port}${path}`)).status).toBe(404);
  await expect(listenHttp(server, { port: 0, serverCard })).rejects.toThrow("publicUrl");
  const wrong = { ...serverCard, name: "gw" };
  await expect(listenHttp(server, { port: 0, publicUrl, serverCard: wrong })).rejects.toThrow(
    "com.example/gateway",
  );
});
