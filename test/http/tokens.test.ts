import { describe, expect, test } from "vitest";
import { ScopeError } from "../../packages/core/src/errors/index.ts";
import { createVirtualClock } from "../../packages/junctor/src/testing/virtual-clock.ts";
import { acceptTokens } from "../../packages/junctor/src/tokens/accept-tokens.ts";
import type { Authenticate } from "../../packages/server/src/http/authenticate.ts";
import type { ListenHttpOptions } from "../../packages/server/src/http/http-options.ts";
import { listen } from "../support/http-tools.ts";
import {
  connectLegacy,
  initializeOf,
  legacyCall,
  modern,
  modernCall,
  modernPost,
  postOf,
  toPairs,
} from "../support/http-wire.ts";
import { createTestIssuer } from "../support/issuer.ts";
import { exchange, RawSocket } from "../support/raw-http.ts";

const publicUrl = "https://mcp.example.com/mcp";
const metadataUrl = "https://mcp.example.com/.well-known/oauth-protected-resource/mcp";
const issuer = await createTestIssuer();
const issuers = { corp: { issuer: issuer.url, scopes: ["mcp:use"] } };
const authenticate = acceptTokens({ publicUrl, issuers, fetch: issuer.fetch });
const secured: ListenHttpOptions = { publicUrl, authenticate };
const authorization = `Bearer ${await issuer.sign()}`;
const list = modern("tools/list");

describe("an endpoint with issuers", () => {
  test("lets a caller in with a token, in both eras", async () => {
    await using at = await listen(secured);
    at.registry.register("who", {}, (_, { identity }) => identity?.name ?? "nobody");
    const reply = await exchange(at.port, modernPost(modernCall("who"), { authorization }));
    expect(reply.json).toMatchObject({ result: { content: [{ text: "corp:alice" }] } });
    using wire = await connectLegacy(at.port, "2025-11-25", {}, { authorization });
    expect(await wire.ask(legacyCall(2, "who"))).toMatchObject({
      result: { content: [{ text: "corp:alice" }] },
    });
  });

  test("challenges a caller without a token, whatever the method, and says where to get one", async () => {
    await using at = await listen(secured);
    const challenge = `Bearer resource_metadata="${metadataUrl}", scope="mcp:use"`;
    for (const request of [modernPost(list), postOf(initializeOf("2025-11-25")), { method: "GET" }]) {
      const reply = await exchange(at.port, request);
      expect([reply.status, reply.headers["www-authenticate"]]).toEqual([401, challenge]);
    }
  });

  test("says nothing of the Host that an attacker sends", async () => {
    await using at = await listen({ ...secured, allowedHosts: ["evil.example.com"] });
    const reply = await exchange(at.port, { ...modernPost(list), host: "evil.example.com" });
    expect(reply.headers["www-authenticate"]).toContain(metadataUrl);
    const path = "/.well-known/oauth-protected-resource/mcp";
    const document = await exchange(at.port, { method: "GET", path, host: "evil.example.com" });
    expect(document.json).toMatchObject({ resource: publicUrl });
  });

  test("takes no token from the query", async () => {
    await using at = await listen(secured);
    const path = `/mcp?access_token=${authorization.slice("Bearer ".length)}`;
    expect((await exchange(at.port, { ...modernPost(list), path })).status).toBe(401);
  });

  test("shows its metadata to every page, and to clients without a token", async () => {
    await using at = await listen(secured);
    for (const path of ["", "/mcp"].map((end) => `/.well-known/oauth-protected-resource${end}`)) {
      const headers = toPairs({ origin: "https://anywhere.example.com" });
      const reply = await exchange(at.port, { method: "GET", path, headers });
      expect([reply.status, reply.headers["access-control-allow-origin"]]).toEqual([200, "*"]);
      expect(reply.json).toEqual({
        resource: publicUrl,
        authorization_servers: [issuer.url],
        scopes_supported: ["mcp:use"],
        bearer_methods_supported: ["header"],
      });
      expect((await exchange(at.port, { method: "OPTIONS", path, headers })).status).toBe(204);
      expect((await exchange(at.port, { method: "POST", path })).status).toBe(405);
    }
    const path = "/.well-known/oauth-protected-resource/other";
    expect((await exchange(at.port, { method: "GET", path })).status).toBe(404);
  });

  test("has no metadata without issuers", async () => {
    await using at = await listen();
    const path = "/.well-known/oauth-protected-resource";
    expect((await exchange(at.port, { method: "GET", path })).status).toBe(404);
  });

  test("says 503 with a time to come back while a token cannot be checked", async () => {
    const down = await createTestIssuer();
    down.isDown = true;
    const onWarning = (): void => {};
    const own = acceptTokens({ publicUrl, issuers, fetch: down.fetch, onWarning });
    await using at = await listen({ ...secured, authenticate: own });
    const reply = await exchange(at.port, modernPost(list, { authorization }));
    expect([reply.status, reply.headers["retry-after"]]).toEqual([503, "5"]);
  });
});

describe("a tool that needs more scopes", () => {
  const challenge = `Bearer error="insufficient_scope", resource_metadata="${metadataUrl}", scope="mcp:use mcp:write"`;

  test.each(["application/json, text/event-stream", "text/event-stream"])(
    "is answered with 403 and a challenge, in both eras (accept: %s)",
    async (accept) => {
      await using at = await listen(secured);
      at.registry.register("write", {}, () => {
        throw new ScopeError(["mcp:use", "mcp:write"]);
      });
      const reply = await exchange(at.port, modernPost(modernCall("write"), { authorization, accept }));
      expect([reply.status, reply.headers["www-authenticate"]]).toEqual([403, challenge]);
      expect(reply.json).toMatchObject({
        error: {
          code: -32003,
          data: { code: "provider.insufficient_scope", scopes: ["mcp:use", "mcp:write"] },
        },
      });
      using wire = await connectLegacy(at.port, "2025-11-25", {}, { authorization });
      const legacy = await wire.post(legacyCall(2, "write"), { accept });
      expect([legacy.status, legacy.headers["www-authenticate"]]).toEqual([403, challenge]);
    },
  );

  test("says so without metadata where callers have keys only", async () => {
    await using at = await listen({ authenticate: () => "me" });
    at.registry.register("write", {}, () => {
      throw new ScopeError(["write"]);
    });
    const reply = await exchange(at.port, modernPost(modernCall("write")));
    expect([reply.status, reply.headers["www-authenticate"]]).toEqual([
      403,
      'Bearer error="insufficient_scope", scope="write"',
    ]);
  });
});

describe("when its token expires", () => {
  const start = Date.now();
  const expiring: Authenticate = () => ({ name: "corp:alice", expiresAt: start + 60_000 });

  test("a modern stream ends with its result", async () => {
    const clock = createVirtualClock(start);
    await using at = await listen({ authenticate: expiring, clock });
    using socket = new RawSocket(at.port);
    const listenTo = modern("subscriptions/listen", { notifications: { toolsListChanged: true } });
    const reply = await socket.send(modernPost(listenTo)).head;
    await expect.poll(() => reply.messages.length).toBe(1);
    await clock.advance(59_999);
    expect(reply.isComplete).toBe(false);
    await clock.advance(1);
    const { messages } = await reply.complete;
    expect(messages.at(-1)).toMatchObject({ result: { resultType: "complete" } });
  });

  test("the stream of a legacy session ends, and the session goes on", async () => {
    const clock = createVirtualClock(start);
    await using at = await listen({ authenticate: expiring, clock });
    using wire = await connectLegacy(at.port, "2025-11-25");
    const { reply } = wire.get();
    expect((await reply.head).status).toBe(200);
    await expect.poll(() => clock.sleeping).toBeGreaterThan(0);
    await clock.advance(60_000);
    await reply.complete;
    expect(await wire.ask({ jsonrpc: "2.0", id: 7, method: "ping" })).toMatchObject({ result: {} });
  });

  test("the stream of a 2024-11-05 client ends", async () => {
    const clock = createVirtualClock(start);
    await using at = await listen({ authenticate: expiring, clock });
    using socket = new RawSocket(at.port);
    const reply = await socket.send({ method: "GET", path: "/sse" }).head;
    await expect.poll(() => clock.sleeping).toBeGreaterThan(0);
    await clock.advance(60_000);
    expect((await reply.complete).events[0]).toMatchObject({ event: "endpoint" });
  });
});
