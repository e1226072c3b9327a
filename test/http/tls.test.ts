import { createHash, X509Certificate } from "node:crypto";
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { request, type RequestOptions } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "node:tls";
import { afterEach, describe, expect, test } from "vitest";
import { TlsError } from "../../packages/core/src/errors/index.ts";
import { parseConfigValue } from "../../packages/junctor/src/config/parse-config.ts";
import { createGateway } from "../../packages/junctor/src/gateway/gateway.ts";
import { acceptTokens } from "../../packages/junctor/src/tokens/accept-tokens.ts";
import type { AuthRequest } from "../../packages/server/src/http/authenticate.ts";
import { listenHttp } from "../../packages/server/src/http/listen-http.ts";
import { createRegistry } from "../../packages/server/src/registry/registry.ts";
import { listen } from "../support/http-tools.ts";
import { mirrored, modernCall } from "../support/http-wire.ts";
import { createTestIssuer } from "../support/issuer.ts";

const fixtures = join(import.meta.dirname, "../fixtures/tls");
const file = (name: string): string => join(fixtures, name);
const tls = { cert: file("server.pem"), key: file("server.key"), clientCa: file("ca.pem") };
const ca = readFileSync(file("ca.pem"));

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

/** Calls the tool `who` over TLS. */
function callWho(port: number, options: RequestOptions = {}): Promise<{ status: number; body: string }> {
  const message = modernCall("who");
  const headers = { "content-type": "application/json", ...mirrored(message) };
  return new Promise((resolve, reject) => {
    const sent = request(
      { host: "127.0.0.1", port, path: "/mcp", method: "POST", ca, headers, agent: false, ...options },
      (response) => {
        let body = "";
        response.on("data", (chunk: Buffer) => (body += chunk.toString()));
        response.on("end", () => resolve({ status: response.statusCode ?? 0, body }));
      },
    );
    sent.on("error", reject);
    sent.end(JSON.stringify(message));
  });
}

/** The thumbprint of the certificate `client`, as the `cnf` of a token spells it. */
const thumbprint = createHash("sha256")
  .update(new X509Certificate(readFileSync(file("client.pem"))).raw)
  .digest("base64url");

const withCertificate = (name: string): RequestOptions => ({
  cert: readFileSync(file(`${name}.pem`)),
  key: readFileSync(file(`${name}.key`)),
});

describe("a listener with TLS", () => {
  test("serves by https, and says so in its URL", async () => {
    await using at = await listen({ tls });
    at.registry.register("who", {}, () => "anyone");
    expect(at.listener.url).toBe(`https://127.0.0.1:${at.port}/mcp`);
    expect((await callWho(at.port)).status).toBe(200);
  });

  test("takes a renewed certificate without a restart, and keeps the old one while the new one does not fit", async () => {
    const folder = mkdtempSync(join(tmpdir(), "junctor-tls-"));
    folders.push(folder);
    const own = { cert: join(folder, "cert.pem"), key: join(folder, "key.pem"), lookEveryMs: 5 };
    copyFileSync(file("server.pem"), own.cert);
    copyFileSync(file("server.key"), own.key);
    await using at = await listen({ tls: own });
    const nameNow = (): Promise<string> =>
      new Promise((resolve, reject) => {
        const socket = connect({ host: "127.0.0.1", port: at.port, ca }, () => {
          resolve(String(socket.getPeerCertificate().subject.CN));
          socket.destroy();
        });
        socket.on("error", reject);
      });
    expect(await nameNow()).toBe("first server");
    writeFileSync(own.cert, "no certificate");
    copyFileSync(file("renewed.key"), own.key);
    await expect.poll(() => at.warnings.join()).toContain("The new certificate is not used");
    expect(await nameNow()).toBe("first server");
    copyFileSync(file("renewed.pem"), own.cert);
    await expect.poll(nameNow).toBe("second server");
  });

  test("does not start with files that are missing or do not fit, and says which", async () => {
    const missing = listen({ tls: { ...tls, key: "/nowhere/server.key" } });
    await expect(missing).rejects.toThrow(TlsError);
    await expect(missing).rejects.toThrow("/nowhere/server.key");
    await expect(listen({ tls: { ...tls, key: file("client.key") } })).rejects.toThrow(TlsError);
  });

  test("shows an authenticator the certificate of a client, if an authority that it trusts signed it", async () => {
    const seen: unknown[] = [];
    const authenticate = (_: unknown, given?: AuthRequest): string => {
      seen.push(given?.certificate);
      return given?.certificate?.name ?? "none";
    };
    await using at = await listen({ tls, authenticate });
    at.registry.register("who", {}, (_, { caller }) => String(caller));
    for (const options of [withCertificate("client"), withCertificate("stranger"), {}])
      await callWho(at.port, options);
    const expiresAt = expect.any(Number) as number;
    expect(seen).toEqual([
      { name: "deploy-bot", units: ["ops", "eng"], issuer: "Test authority", expiresAt, thumbprint },
      undefined,
      undefined,
    ]);
  });
});

test("callers of a gateway may come with certificates, beside keys", async () => {
  const key = "0123456789abcdef";
  const junctor = { http: { tls }, keys: { ada: { env: "ADA" } } };
  const registry = createRegistry();
  registry.register("who", {}, (_, { identity }) => JSON.stringify([identity?.name, identity?.groups]));
  await using gateway = await createGateway({ junctor }, { env: { ADA: key }, local: { own: registry } });
  await gateway.ready;
  await using at = await listenHttp(gateway.server, { port: 0, tls, authenticate: gateway.authenticate! });
  expect((await callWho(at.port, withCertificate("client"))).body).toContain(
    String.raw`[\"cert:deploy-bot\",[\"ops\",\"eng\"]]`,
  );
  const message = modernCall("who");
  const headers = {
    "content-type": "application/json",
    ...mirrored(message),
    authorization: `Bearer ${key}`,
  };
  expect((await callWho(at.port, { headers })).body).toContain(String.raw`[\"ada\",null]`);
  for (const options of [withCertificate("stranger"), {}])
    expect((await callWho(at.port, options)).status).toBe(401);
});

test("a token that is bound to a certificate is good with that certificate only", async () => {
  const issuer = await createTestIssuer();
  const publicUrl = "https://mcp.example.com/mcp";
  const authenticate = acceptTokens({
    publicUrl,
    issuers: { corp: { issuer: issuer.url } },
    fetch: issuer.fetch,
  });
  await using at = await listen({ tls, authenticate });
  at.registry.register("who", {}, (_, { caller }) => String(caller));
  const statusOf = async (token: string, options: RequestOptions): Promise<number> => {
    const authorization = `Bearer ${token}`;
    const headers = { "content-type": "application/json", ...mirrored(modernCall("who")), authorization };
    return (await callWho(at.port, { headers, ...options })).status;
  };
  const bound = await issuer.sign({ cnf: { "x5t#S256": thumbprint } });
  expect(await statusOf(bound, withCertificate("client"))).toBe(200);
  // The same token, which is known by now, on other connections.
  for (const options of [{}, withCertificate("stranger")]) expect(await statusOf(bound, options)).toBe(401);
  expect(await statusOf(bound, withCertificate("client"))).toBe(200);
  for (const cnf of [{ "x5t#S256": `${thumbprint}x` }, { jkt: thumbprint }])
    expect(await statusOf(await issuer.sign({ cnf }), withCertificate("client"))).toBe(401);
});

test("paths of TLS files are relative to the config", () => {
  const given = { http: { tls: { cert: "a.pem", key: "b.pem", clientCa: "/etc/c.pem" } } };
  const { http } = parseConfigValue({ junctor: given }, { file: "f", env: {}, folder: "/etc/mcp" });
  expect(http.tls).toEqual({ cert: "/etc/mcp/a.pem", key: "/etc/mcp/b.pem", clientCa: "/etc/c.pem" });
});
