import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { toNodeHandler } from "@modelcontextprotocol/node";
import {
  createMcpHandler,
  McpServer,
  OAuthError,
  OAuthErrorCode,
  requireBearerAuth,
} from "@modelcontextprotocol/server";
import { expect, onTestFinished, test } from "vitest";
import { connect } from "../../packages/junctor/src/index.ts";
import { startIdentityProvider } from "../support/identity-provider.ts";

/** The server of the official SDK behind its own bearer check. */
async function listenOfficial(
  issuer: string,
  find: (token: string) => Promise<{ readonly scope?: string; readonly clientId?: string } | undefined>,
): Promise<string> {
  const handler = createMcpHandler(() => {
    const server = new McpServer({ name: "official", version: "1.0.0" });
    server.registerTool("hello", {}, () => ({ content: [{ type: "text", text: "hello" }] }));
    return server;
  });
  let origin = "";
  const handle = toNodeHandler({
    fetch: async (request) => {
      const url = new URL(request.url);
      const metadata = `${origin}/.well-known/oauth-protected-resource/mcp`;
      if (url.pathname === "/.well-known/oauth-protected-resource/mcp")
        return Response.json({ resource: `${origin}/mcp`, authorization_servers: [issuer] });
      const gate = requireBearerAuth({
        resourceMetadataUrl: metadata,
        verifier: {
          verifyAccessToken: async (token) => {
            const found = await find(token);
            if (found === undefined) throw new OAuthError(OAuthErrorCode.InvalidToken, "unknown token");
            const scopes = (found.scope ?? "").split(" ");
            return { token, clientId: found.clientId ?? "", scopes, expiresAt: 4_102_444_800 };
          },
        },
      });
      const authInfo = await gate(request);
      return authInfo instanceof Response ? authInfo : handler.fetch(request, { authInfo });
    },
  });
  const listener = createServer(
    (request, response) => void handle(request as Parameters<typeof handle>[0], response),
  );
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  onTestFinished(() => {
    listener.closeAllConnections();
    listener.close();
  });
  origin = `http://127.0.0.1:${(listener.address() as AddressInfo).port}`;
  return `${origin}/mcp`;
}

test.each(["2026-07-28", "2025-11-25"] as const)(
  "the official SDK's server with its bearer check is signed in to, at %s",
  async (revision) => {
    const idp = await startIdentityProvider();
    onTestFinished(() => idp[Symbol.asyncDispose]());
    const url = await listenOfficial(idp.issuer, idp.find);
    await using client = await connect(url, {
      revision,
      authorization: { open: (page) => idp.browse(page) },
    });
    expect((await client.callTool("hello")).content).toEqual([{ type: "text", text: "hello" }]);
    expect(idp.tokenRequests).toEqual([{ grant: "authorization_code", status: 200 }]);
  },
);
