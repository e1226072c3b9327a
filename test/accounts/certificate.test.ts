import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Agent, fetch as send } from "undici";
import { expect, onTestFinished, test } from "vitest";
import { createMemoryStore } from "../../packages/client/src/sign-in/credential.ts";
import { createGateway } from "../../packages/junctor/src/gateway/gateway.ts";
import { listenHttp } from "../../packages/server/src/http/listen-http.ts";
import { mirrored, modernCall } from "../support/http-wire.ts";
import { startIdentityProvider } from "../support/identity-provider.ts";
import { startProtectedServer } from "../support/protected-server.ts";
import { createVisitor } from "../support/visitor.ts";

const file = (name: string): string => join(import.meta.dirname, "../fixtures/tls", name);
const tls = { cert: file("server.pem"), key: file("server.key"), clientCa: file("ca.pem") };

/** A way to send requests over TLS, with a certificate of a client or without. */
function sender(name?: string): typeof fetch {
  const own =
    name === undefined
      ? {}
      : { cert: readFileSync(file(`${name}.pem`)), key: readFileSync(file(`${name}.key`)) };
  const dispatcher = new Agent({ connect: { ca: readFileSync(file("ca.pem")), ...own } });
  onTestFinished(() => dispatcher.close());
  return ((url: string, init: object) => send(url, { ...init, dispatcher })) as unknown as typeof fetch;
}

test("a caller with a certificate connects its account in a browser that shows the same certificate, and in no other", async () => {
  const idp = await startIdentityProvider();
  onTestFinished(() => idp[Symbol.asyncDispose]());
  const server = await startProtectedServer({ issuers: [idp.issuer], find: idp.find });
  onTestFinished(() => server[Symbol.asyncDispose]());
  const store = createMemoryStore();
  const config = {
    mcpServers: { safe: { url: server.url } },
    junctor: { http: { tls }, servers: { safe: { credentials: "perCaller" } } },
  };
  await using gateway = await createGateway(config, { credentials: store });
  const { authenticate, pages } = gateway;
  await using listener = await listenHttp(gateway.server, {
    port: 0,
    tls,
    authenticate: authenticate!,
    pages: pages!,
  });
  const call = async (tool: string): Promise<string> => {
    const message = modernCall(tool);
    const headers = {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      ...mirrored(message),
    };
    return (
      await sender("client")(listener.url, { method: "POST", headers, body: JSON.stringify(message) })
    ).text();
  };
  const [link = ""] = /https:\/\/[\w.:]+\/connect\/[\w.-]+/.exec(await call("safe__connect")) ?? [];
  const stranger = createVisitor({}, sender());
  const page = await stranger.open(link);
  expect(page.headers.get("set-cookie")).toMatch(
    /^__Host-junctor-connect-.*; HttpOnly; SameSite=Lax; Secure$/,
  );
  expect((await stranger.send(page)).status).toBe(403);
  const visitor = createVisitor({}, sender("client"));
  const consent = await visitor.send(await visitor.open(link));
  expect(consent.text).toContain("cert:deploy-bot");
  const done = await visitor.signIn(await visitor.send(consent), idp);
  expect(done.text).toContain("Connected");
  expect(await call("safe__read")).toContain('"text":"read"');
});
