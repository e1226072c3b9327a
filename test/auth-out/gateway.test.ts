import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { createMemoryStore, type CredentialStore } from "../../packages/client/src/sign-in/credential.ts";
import { connect, createGateway, type Gateway, type GatewayLog } from "../../packages/junctor/src/index.ts";
import { startIdentityProvider } from "../support/identity-provider.ts";
import { type ProtectedServer, startProtectedServer } from "../support/protected-server.ts";

interface Site {
  readonly server: ProtectedServer;
  readonly gateway: Gateway;
  readonly store: CredentialStore;
  readonly id: string;
  /** All that the gateway wrote: its log and its audit. */
  readonly written: () => string;
  readonly audit: () => readonly { readonly [key: string]: unknown }[];
}

/** A gateway in front of a server that its user is signed in to. */
async function start(): Promise<Site> {
  const idp = await startIdentityProvider();
  onTestFinished(() => idp[Symbol.asyncDispose]());
  const server = await startProtectedServer({
    issuers: [idp.issuer],
    find: idp.find,
    scopesOfWrite: "write",
    metadata: { scopes_supported: ["read"] },
  });
  onTestFinished(() => server[Symbol.asyncDispose]());
  const folder = mkdtempSync(join(tmpdir(), "junctor-auth-gateway-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const store = createMemoryStore();
  const client = await connect(server.url, { authorization: { open: (url) => idp.browse(url), store } });
  await client.close();
  const lines: string[] = [];
  const write = (facts: object, text: string): void => void lines.push(inspect([facts, text], { depth: 9 }));
  const log: GatewayLog = { debug: write, info: write, warn: write, error: write };
  const file = join(folder, "audit.jsonl");
  const config = { mcpServers: { safe: { url: server.url } }, junctor: { audit: { file } } };
  const gateway = await createGateway(config, { credentials: store, log });
  onTestFinished(() => gateway.close());
  await gateway.ready;
  const text = (): string => readFileSync(file, "utf8");
  return {
    server,
    gateway,
    store,
    id: JSON.stringify(["credential", server.url, "shared"]),
    written: () => lines.join("\n") + text(),
    audit: () =>
      text()
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line) as { readonly [key: string]: unknown }),
  };
}

/** Every token that a store has had so far. */
async function tokensIn(store: CredentialStore, id: string): Promise<readonly string[]> {
  const { accessToken, refreshToken } = (await store.read(id)) as {
    accessToken: string;
    refreshToken: string;
  };
  return [accessToken, refreshToken];
}

test("a token that its server refuses is renewed within the call, and the audit says so", async () => {
  const { server, gateway, store, id, written, audit } = await start();
  const before = await tokensIn(store, id);
  server.revoked.add(before[0] ?? "");
  await using client = await connect({ server: gateway.server });
  expect((await client.callTool("safe__read")).content).toEqual([{ type: "text", text: "read" }]);
  const after = await tokensIn(store, id);
  expect(after[0]).not.toBe(before[0]);
  const events = audit().filter(({ kind }) => kind === "event");
  expect(events).toMatchObject([{ server: "safe", tool: "credential.refresh", outcome: "ok" }]);
  for (const token of [...before, ...after]) expect(written()).not.toContain(token);
});

test("a caller is told that a sign-in is missing, and nothing of what the server said", async () => {
  const { server, gateway, store, id, written } = await start();
  const before = await tokensIn(store, id);
  await store.remove(id);
  for (const token of before) server.revoked.add(token);
  await using client = await connect({ server: gateway.server });
  const error: unknown = await client.callTool("safe__read").catch((failure: unknown) => failure);
  expect(String(error)).toContain("junctor login safe");
  expect(inspect(error, { depth: 9 })).not.toMatch(/www-authenticate|resource_metadata|well-known/i);
  for (const token of before) expect(written() + inspect(error, { depth: 9 })).not.toContain(token);
});

test("a call that needs more access fails without being sent on as a challenge", async () => {
  const { gateway } = await start();
  await using client = await connect({ server: gateway.server });
  const error: unknown = await client.callTool("safe__write").catch((failure: unknown) => failure);
  expect(String(error)).toContain("safe wants more access than it was granted");
  expect(inspect(error, { depth: 9 })).not.toMatch(/insufficient_scope|resource_metadata/);
});
