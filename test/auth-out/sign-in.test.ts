import { describe, expect, onTestFinished, test } from "vitest";
import { type AuthorizationOptions, connect } from "../../packages/junctor/src/index.ts";
import {
  type IdentityProvider,
  type IdentityProviderOptions,
  startIdentityProvider,
} from "../support/identity-provider.ts";
import {
  type ProtectedServer,
  type ProtectedServerOptions,
  startProtectedServer,
} from "../support/protected-server.ts";

interface Site {
  readonly idp: IdentityProvider;
  readonly server: ProtectedServer;
  /** Signs in as a browser does, and counts. */
  readonly authorization: AuthorizationOptions;
  readonly opened: string[];
}

async function start(
  idpOptions: IdentityProviderOptions = {},
  serverOptions: Partial<ProtectedServerOptions> = {},
): Promise<Site> {
  const idp = await startIdentityProvider(idpOptions);
  onTestFinished(() => idp[Symbol.asyncDispose]());
  const server = await startProtectedServer({ issuers: [idp.issuer], find: idp.find, ...serverOptions });
  onTestFinished(() => server[Symbol.asyncDispose]());
  const opened: string[] = [];
  const open = (url: string): Promise<string> => {
    opened.push(url);
    return idp.browse(url);
  };
  return { idp, server, opened, authorization: { open } };
}

describe.each(["2026-07-28", "2025-11-25"] as const)("a server of %s that wants OAuth", (revision) => {
  test("is used after one sign-in", async () => {
    const { server, authorization, opened, idp } = await start();
    await using client = await connect(server.url, { authorization, revision });
    expect((await client.callTool("read")).content).toEqual([{ type: "text", text: "read" }]);
    expect(opened).toHaveLength(1);
    expect(idp.tokenRequests).toEqual([{ grant: "authorization_code", status: 200 }]);
    const asked = new URL(opened[0] ?? "").searchParams;
    expect(asked.get("resource")).toBe(server.url);
    expect(asked.get("code_challenge_method")).toBe("S256");
  });

  test("gets a new token when the old one is refused, without another sign-in", async () => {
    const { server, authorization, opened, idp } = await start();
    await using client = await connect(server.url, { authorization, revision });
    server.revoked.add(server.served[0]?.token ?? "");
    await client.callTool("read");
    expect(opened).toHaveLength(1);
    expect(idp.tokenRequests.map(({ grant }) => grant)).toEqual(["authorization_code", "refresh_token"]);
  });

  test("is given more access where it wants more, together with what was granted", async () => {
    const { server, authorization, opened } = await start(
      {},
      { scopesOfWrite: "write", metadata: { scopes_supported: ["read"] } },
    );
    await using client = await connect(server.url, { authorization, revision });
    await client.callTool("write");
    const scopes = opened.map((url) => new URL(url).searchParams.get("scope")?.split(" ").toSorted());
    expect(scopes).toEqual([
      ["offline_access", "read"],
      ["offline_access", "read", "write"],
    ]);
  });

  test("sees a program by its own name with client credentials", async () => {
    const known = {
      client_id: "machine",
      client_secret: "a secret that only this machine has",
      grant_types: ["client_credentials"],
      redirect_uris: [],
      response_types: [],
    };
    const { server, idp } = await start({ clients: [known] });
    await using client = await connect(server.url, {
      revision,
      authorization: {
        grant: "client_credentials",
        clientId: known.client_id,
        clientSecret: known.client_secret,
        scopes: ["read"],
      },
    });
    await client.callTool("read");
    expect(idp.tokenRequests).toEqual([{ grant: "client_credentials", status: 200 }]);
  });
});

test("a server that moved to another authorization server is signed in to again, with another client", async () => {
  const other = await startIdentityProvider();
  onTestFinished(() => other[Symbol.asyncDispose]());
  const { server, idp, opened } = await start({}, { find: (token) => current.find(token) });
  let current = idp;
  const open = (url: string): Promise<string> => {
    opened.push(url);
    return current.browse(url);
  };
  await using client = await connect(server.url, { authorization: { open } });
  current = other;
  server.issuers = [other.issuer];
  await client.callTool("read");
  const [before, after] = opened.map((url) => new URL(url));
  expect(after?.origin).toBe(other.issuer);
  expect(after?.searchParams.get("client_id")).not.toBe(before?.searchParams.get("client_id"));
  // The old one was asked to renew its token, once.
  expect(idp.tokenRequests.map(({ grant }) => grant)).toEqual(["authorization_code", "refresh_token"]);
});

test("a call without a way to sign in fails, and says what to do", async () => {
  const { server } = await start();
  await expect(connect(server.url, { authorization: {} })).rejects.toMatchObject({
    code: "auth.login_required",
    message: `${server.url}: it wants you to sign in: pass authorization: { open } to connect()`,
  });
});

test("an authorization server that registers no clients is named, with the callback to register", async () => {
  const { server, authorization } = await start({ registers: false });
  await expect(connect(server.url, { authorization })).rejects.toMatchObject({
    code: "auth.setup",
    message: expect.stringContaining("http://127.0.0.1:33418/callback") as string,
  });
});

test("many requests at once need one sign-in", async () => {
  const { server, authorization, opened } = await start();
  await using client = await connect(server.url, { authorization });
  server.revoked.add(server.served[0]?.token ?? "");
  await Promise.all(Array.from({ length: 20 }, () => client.callTool("read")));
  expect(opened).toHaveLength(1);
});
