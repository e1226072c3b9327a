import { inspect } from "node:util";
import { describe, expect, test } from "vitest";
import { systemClock } from "../../../core/src/async/clock.ts";
import { createMemoryStore, type Credential } from "./credential.ts";
import type { GuardedFetch } from "./guarded-fetch.ts";
import {
  finishLogin,
  type PendingLogin,
  type LoginOccasion,
  type LoginTerms,
  prepareLogin,
} from "./login.ts";

const server = new URL("https://mcp.example.com/team/mcp");
const redirectUrl = "http://127.0.0.1:33418/callback";

/** Documents by URL; a function is asked for a POST. */
type Site = { readonly [url: string]: object | ((body: string) => object) };

const prm = "https://mcp.example.com/.well-known/oauth-protected-resource/team/mcp";
const asUrl = "https://as.example.com/.well-known/oauth-authorization-server";
const goodAs = {
  issuer: "https://as.example.com",
  authorization_endpoint: "https://as.example.com/authorize",
  token_endpoint: "https://as.example.com/token",
  registration_endpoint: "https://as.example.com/register",
  code_challenge_methods_supported: ["S256"],
  authorization_response_iss_parameter_supported: true,
  token_endpoint_auth_methods_supported: ["none"],
};
const good: Site = {
  [prm]: { resource: server.href, authorization_servers: ["https://as.example.com"] },
  [asUrl]: goodAs,
  "https://as.example.com/register": () => ({ client_id: "registered" }),
  "https://as.example.com/token": () => ({ access_token: "secret-token", token_type: "Bearer" }),
};

/** Terms for a site, with the requests that were made. */
function termsFor(site: Site, more: Partial<LoginTerms> = {}): LoginTerms & { readonly asked: string[] } {
  const asked: string[] = [];
  const fetch: GuardedFetch = (url, { method = "GET", body = "" } = {}) => {
    asked.push(`${method} ${url.href}`);
    const found = site[url.href];
    if (found === undefined) return Promise.resolve(new Response("", { status: 404 }));
    return Promise.resolve(Response.json(typeof found === "function" ? found(body) : found));
  };
  const client = { redirectUrl, applicationType: "native", clientName: "Test" } as const;
  return {
    server,
    client,
    grant: "authorization_code",
    sendsResource: true,
    store: createMemoryStore(),
    fetch,
    clock: systemClock,
    asked,
    ...more,
  };
}

function prepare(site: Site, occasion: LoginOccasion = {}): Promise<PendingLogin> {
  return prepareLogin(termsFor(site), occasion);
}

describe("a sign-in does not begin", () => {
  test("with metadata at another origin", async () => {
    const challenge = { status: 401, resourceMetadata: "https://evil.example/prm" } as const;
    await expect(prepare(good, { challenge })).rejects.toThrow("names metadata elsewhere");
  });

  test.each([
    "https://other.example.com/team/mcp",
    "https://mcp.example.com/team/mcp/deeper",
    "https://mcp.example.com/tea",
    "https://mcp.example.com.evil.example/team/mcp",
    "no URL",
  ])("for the resource %s", async (resource) => {
    const site = { ...good, [prm]: { resource, authorization_servers: ["https://as.example.com"] } };
    await expect(prepare(site)).rejects.toThrow("its metadata is of another resource");
  });

  test.each(["https://as.example.com/", "https://AS.example.com", "https://as.example.com:443", undefined])(
    "with an authorization server that calls itself %s",
    async (issuer) => {
      const site = { ...good, [asUrl]: { ...goodAs, issuer } };
      await expect(prepare(site)).rejects.toThrow("write it as oauth.issuer into the config");
    },
  );

  test.each([
    "javascript:alert(1)",
    "http://as.example.com/authorize",
    "file:///etc/passwd",
    "$(touch /tmp/x)",
    "https://user:password@as.example.com/authorize",
  ])("with the endpoint %s", async (authorization_endpoint) => {
    const site = { ...good, [asUrl]: { ...goodAs, authorization_endpoint } };
    await expect(prepare(site)).rejects.toThrow("as its authorization_endpoint");
  });

  test.each([undefined, [], ["plain"]])("without PKCE: %j", async (code_challenge_methods_supported) => {
    const site = { ...good, [asUrl]: { ...goodAs, code_challenge_methods_supported } };
    await expect(prepare(site)).rejects.toThrow("does not offer PKCE with S256");
  });

  test("with a client of the config and another authorization server than before", async () => {
    const earlier = { issuer: { issuer: "https://before.example" }, scopes: [] } as unknown as Credential;
    const terms = termsFor(good);
    const client = { ...terms.client, clientId: "given", clientSecret: "only for the one before" };
    await expect(prepareLogin({ ...terms, client }, { earlier })).rejects.toThrow(
      "another authorization server",
    );
    expect(terms.asked.filter((request) => request.startsWith("POST"))).toEqual([]);
  });
});

test("an issuer that the user wrote down is asked, whatever the server says", async () => {
  const evil = { ...good, [prm]: { resource: server.href, authorization_servers: ["https://evil.example"] } };
  const terms = termsFor(evil, { issuer: "https://as.example.com" });
  expect((await prepareLogin(terms, {})).as.issuer).toBe("https://as.example.com");
  expect(terms.asked.some((request) => request.includes("evil"))).toBe(false);
});

test("a client is registered once with an issuer, and never shown to another", async () => {
  const store = createMemoryStore();
  const first = termsFor(good, { store });
  await prepareLogin(first, {});
  const again = termsFor(good, { store });
  expect((await prepareLogin(again, {})).client.clientId).toBe("registered");
  expect(again.asked.some((request) => request.startsWith("POST"))).toBe(false);
});

describe("the answer to a sign-in", () => {
  const finish = async (
    edit: (query: URLSearchParams) => void,
    at = redirectUrl,
  ): Promise<readonly string[]> => {
    const terms = termsFor(good);
    const pending = await prepareLogin(terms, {});
    const callback = new URL(at);
    callback.searchParams.set("code", "secret-code");
    callback.searchParams.set("state", pending.state);
    callback.searchParams.set("iss", "https://as.example.com");
    edit(callback.searchParams);
    await expect(finishLogin(pending, callback, terms)).rejects.toMatchObject({ code: "auth.callback" });
    return terms.asked.filter((request) => request.endsWith("/token"));
  };

  test.each<readonly [string, (query: URLSearchParams) => void]>([
    ["without state", (query) => query.delete("state")],
    ["with the state of another sign-in", (query) => query.set("state", "another")],
    ["with two states", (query) => query.append("state", "another")],
    ["of another issuer", (query) => query.set("iss", "https://evil.example")],
    ["of an issuer that differs by a slash", (query) => query.set("iss", "https://as.example.com/")],
    ["without the issuer that was promised", (query) => query.delete("iss")],
    ["without a code", (query) => query.delete("code")],
  ])("%s asks for no token", async (_, edit) => {
    expect(await finish(edit)).toEqual([]);
  });

  test("at another address asks for no token", async () => {
    expect(await finish(() => {}, "http://127.0.0.1:33418/other")).toEqual([]);
  });

  test("of another issuer shows nothing of what it says", async () => {
    const terms = termsFor(good);
    const pending = await prepareLogin(terms, {});
    const query = new URLSearchParams({
      error: "phishing text",
      state: pending.state,
      iss: "https://evil.example",
    });
    const failed = finishLogin(pending, new URL(`${redirectUrl}?${query.toString()}`), terms);
    await expect(failed).rejects.toThrow(/^(?!.*phishing)/);
  });

  test("that is wrong reaches no error with its tokens", async () => {
    const answer = { access_token: "secret-token", token_type: "mac", refresh_token: "secret-refresh" };
    const terms = termsFor({ ...good, "https://as.example.com/token": () => answer });
    const pending = await prepareLogin(terms, {});
    const query = new URLSearchParams({
      code: "secret-code",
      state: pending.state,
      iss: "https://as.example.com",
    });
    const error: unknown = await finishLogin(
      pending,
      new URL(`${redirectUrl}?${query.toString()}`),
      terms,
    ).catch((failure: unknown) => failure);
    const { inspect } = await import("node:util");
    expect(inspect(error, { depth: 10 })).toContain("AuthorizationError");
    expect(inspect(error, { depth: 10 })).not.toContain("secret");
  });
});

test("a refusal that repeats the code is told without it", async () => {
  const echo = (body: string): object => ({ error: "invalid_grant", error_description: `bad: ${body}` });
  const terms = termsFor({ ...good, "https://as.example.com/token": echo });
  const refusing: GuardedFetch = async (url, request) => {
    const reply = await terms.fetch(url, request);
    return url.pathname === "/token" ? new Response(reply.body, { status: 400 }) : reply;
  };
  const pending = await prepareLogin(terms, {});
  const callback = new URL(redirectUrl);
  callback.search = String(
    new URLSearchParams({ code: "secret-code", state: pending.state, iss: goodAs.issuer }),
  );
  const error: unknown = await finishLogin(pending, callback, { ...terms, fetch: refusing }).catch(
    (failure: unknown) => failure,
  );
  expect(error).toMatchObject({ code: "auth.refused", error: "invalid_grant" });
  expect(inspect(error, { depth: 9 })).not.toMatch(new RegExp(`secret-code|${pending.verifier}`));
});

test("a mix-up of two authorization servers ends before a code is sent to the wrong one", async () => {
  const evilUrl = "https://evil.example/.well-known/oauth-authorization-server";
  const evilAs = {
    ...goodAs,
    issuer: "https://evil.example",
    authorization_endpoint: "https://as.example.com/authorize",
    token_endpoint: "https://evil.example/token",
    registration_endpoint: "https://evil.example/register",
  };
  const terms = termsFor({
    ...good,
    [prm]: { resource: server.href, authorization_servers: ["https://evil.example"] },
    [evilUrl]: evilAs,
    "https://evil.example/register": () => ({ client_id: "same" }),
  });
  const pending = await prepareLogin(terms, {});
  // The honest one answers, because the user was sent there, and names itself.
  const query = new URLSearchParams({
    code: "secret-code",
    state: pending.state,
    iss: "https://as.example.com",
  });
  await expect(
    finishLogin(pending, new URL(`${redirectUrl}?${query.toString()}`), terms),
  ).rejects.toMatchObject({
    code: "auth.callback",
  });
  expect(terms.asked).not.toContain("POST https://evil.example/token");
});
