import { exportSPKI, importJWK, type importPKCS8, SignJWT } from "jose";
import { beforeAll, describe, expect, test } from "vitest";
import { createTestIssuer, type TestIssuer } from "../../../../test/support/issuer.ts";
import type { Caller } from "../../../core/src/mcp/session.ts";
import type { Authenticate, Authenticated, AuthRefusal } from "../../../server/src/http/authenticate.ts";
import { createVirtualClock, type VirtualClock } from "../testing/virtual-clock.ts";
import { acceptTokens } from "./accept-tokens.ts";
import type { IssuerOptions } from "./issuer.ts";
import type { RefusedToken } from "./tokens.ts";

const publicUrl = "https://mcp.example.com/mcp";
const metadataUrl = "https://mcp.example.com/.well-known/oauth-protected-resource/mcp";
const start = Date.UTC(2026, 10, 17);

interface Stage {
  readonly issuer: TestIssuer;
  readonly clock: VirtualClock;
  readonly authenticate: Authenticate;
  readonly refused: RefusedToken[];
  readonly warnings: string[];
  /** What becomes of a token. */
  send(token: string, path?: string, remoteAddress?: string): Promise<Authenticated>;
  /** In seconds since the epoch. */
  now(): number;
}

async function createStage(
  options: Partial<IssuerOptions> = {},
  more: { readonly [alias: string]: TestIssuer } = {},
): Promise<Stage> {
  const clock = createVirtualClock(start);
  const now = (): number => clock.date() / 1000;
  const issuer = await createTestIssuer({ now });
  const all = [issuer, ...Object.values(more)];
  const refused: RefusedToken[] = [];
  const warnings: string[] = [];
  const authenticate = acceptTokens({
    publicUrl,
    issuers: {
      corp: { issuer: issuer.url, scopes: ["mcp:use"], ...options },
      ...Object.fromEntries(Object.entries(more).map(([alias, { url }]) => [alias, { issuer: url }])),
    },
    fetch: async (url, init) => {
      const owner = all.find((each) => new URL(url).origin === new URL(each.url).origin) ?? issuer;
      return owner.fetch(url, init);
    },
    clock,
    onRefused: (token) => refused.push(token),
    onWarning: (text) => warnings.push(text),
  });
  const send: Stage["send"] = async (token, path = "/mcp", remoteAddress) =>
    authenticate((name) => (name === "authorization" ? `Bearer ${token}` : undefined), {
      path,
      remoteAddress,
    });
  return { issuer, clock, authenticate, refused, warnings, send, now };
}

const refusal = (reason: string): Partial<AuthRefusal> => ({
  refused: 401,
  text: `The token is refused: ${reason}`,
});
const otherAudience = refusal(`the token is for another audience (aud); ask for one for ${publicUrl}`);
const noAccessToken = refusal(
  "the token is not an access token; send the access token, not the ID or refresh token",
);

const boundToCertificate = refusal(
  "the token is bound to a certificate (cnf): connect with that certificate, and not through a proxy that ends TLS",
);

describe("a token that is fine", () => {
  test("names its caller, with all that it proves", async () => {
    const { issuer, send, now } = await createStage({ implies: { "mcp:use": ["mcp:read"] } });
    const claims = {
      client_id: "editor",
      groups: ["eng", "ops"],
      scope: "mcp:use a",
      email: "a@example.com",
    };
    expect(await send(await issuer.sign(claims))).toEqual({
      name: "corp:alice",
      issuer: issuer.url,
      subject: "alice",
      clientId: "editor",
      scopes: ["mcp:use", "a", "mcp:read"],
      groups: ["eng", "ops"],
      expiresAt: (now() + 3600) * 1000,
    });
  });

  test("has its scopes in scope or scp, as a string or an array, and its groups where the config says", async () => {
    const { issuer, send } = await createStage({ groupsClaim: "realm_access.roles" });
    const realm = { realm_access: { roles: ["admin"] } };
    for (const scp of ["mcp:use b", ["mcp:use", "b"]])
      expect(await send(await issuer.sign({ scope: undefined, scp, ...realm }))).toMatchObject({
        scopes: ["mcp:use", "b"],
        groups: ["admin"],
      });
  });

  test("is in the one group that a groups claim without an array names, spaces and all", async () => {
    const { issuer, send } = await createStage();
    expect(await send(await issuer.sign({ groups: "office admin" }))).toMatchObject({
      groups: ["office admin"],
    });
    const byScope = await createStage({ groupsClaim: "scope" });
    expect(await byScope.send(await byScope.issuer.sign({ scope: "mcp:use admin" }))).toMatchObject({
      groups: ["mcp:use", "admin"],
    });
  });

  test("keeps all of 1,000 groups", async () => {
    const { issuer, send } = await createStage();
    const groups = Array.from({ length: 1000 }, (_, index) => `g${index}`);
    expect(await send(await issuer.sign({ groups }))).toMatchObject({ groups });
  });

  test("is known again at once, without a look at its signature", async () => {
    const { issuer, authenticate, send } = await createStage();
    const token = await issuer.sign();
    const first = await send(token);
    const again = authenticate(() => `Bearer ${token}`, { path: "/mcp" });
    expect(again).toBe(first);
  });

  test("is fetched keys for once, however many come at the same time", async () => {
    const { issuer, send } = await createStage();
    const tokens = await Promise.all([1, 2, 3, 4].map((sub) => issuer.sign({ sub: String(sub) })));
    const callers = await Promise.all(tokens.map((token) => send(token)));
    expect(callers.map((caller) => (caller as Caller).name)).toEqual([
      "corp:1",
      "corp:2",
      "corp:3",
      "corp:4",
    ]);
    expect(issuer.keyFetches()).toBe(1);
  });
});

describe("refused with 401 is a token", () => {
  let stage: Stage;
  beforeAll(async () => {
    stage = await createStage();
  });

  test("without a signature (alg: none)", async () => {
    const [, payload] = (await stage.issuer.sign()).split(".");
    const header = Buffer.from(JSON.stringify({ alg: "none", typ: "at+jwt" })).toString("base64url");
    expect(await stage.send(`${header}.${payload}.`)).toMatchObject({ refused: 401 });
  });

  test("signed by HS256 with the public key as the secret", async () => {
    const jwk = await stage.issuer.addKey("rsa", { alg: "RS256" });
    const pem = await exportSPKI(
      (await importJWK(jwk, "RS256", { extractable: true })) as Awaited<ReturnType<typeof importPKCS8>>,
    );
    const claims = {
      iss: stage.issuer.url,
      sub: "mallory",
      aud: publicUrl,
      exp: stage.now() + 60,
      scope: "mcp:use",
    };
    for (const secret of [pem, JSON.stringify(jwk), String(jwk.n)]) {
      const token = await new SignJWT(claims)
        .setProtectedHeader({ alg: "HS256", kid: "rsa", typ: "at+jwt" })
        .sign(new TextEncoder().encode(secret));
      expect(await stage.send(token)).toMatchObject(
        refusal("the algorithm of the signature is not accepted (alg)"),
      );
    }
  });

  test("that brings its own key (jwk in its header)", async () => {
    const jwk = await stage.issuer.addKey("own", { isPublished: false });
    const token = await stage.issuer.sign({}, { kid: "own", jwk });
    expect(await stage.send(token)).toMatchObject(refusal("the issuer has no such key (kid)"));
  });

  test.each([
    ["another audience", "https://other.example.com/mcp"],
    ["no audience", undefined],
    ["other audiences in an array", ["https://other.example.com", "https://mcp.example.com"]],
    ["an audience that begins like ours", `${publicUrl}/github`],
    ["an audience that ours begins like", "https://mcp.example.com"],
  ])("with %s", async (_, aud) => {
    expect(await stage.send(await stage.issuer.sign({ aud }))).toMatchObject(otherAudience);
  });

  test("that has ours among other audiences: it is accepted", async () => {
    const token = await stage.issuer.sign({ aud: ["https://other.example.com", publicUrl] });
    expect(await stage.send(token)).toMatchObject({ name: "corp:alice" });
  });

  test("of another issuer with a key of the same id", async () => {
    const other = await createTestIssuer({ url: "https://evil.example.com", now: stage.now });
    const both = await createStage({}, { evil: other });
    // It names the good issuer, and is signed by the other one's key `one`.
    expect(await both.send(await other.sign({ iss: both.issuer.url }))).toMatchObject(
      refusal("the signature is wrong"),
    );
    expect(await both.send(await other.sign({ sub: "alice" }))).toMatchObject({ name: "evil:alice" });
    expect(await stage.send(await other.sign())).toMatchObject(
      refusal("the token is of another issuer (iss)"),
    );
  });

  test.each([
    ["no expiry", { exp: undefined }, "the token has no expiry (exp)"],
    ["no subject", { sub: undefined }, "the token names no subject (sub)"],
    ["an empty subject", { sub: "" }, "the token names no subject (sub)"],
    ["a subject with a line end", { sub: "a\nb" }, "the token names no subject (sub)"],
  ])("with %s", async (_, claims, reason) => {
    expect(await stage.send(await stage.issuer.sign(claims))).toMatchObject(refusal(reason));
  });

  const many = Array.from({ length: 1001 }, (_, index) => `g${index}`);
  test.each([
    [
      "more groups than are kept, of which one may be denied",
      { groups: many },
      "the token has more than 1000 values in groups: have the issuer send fewer",
    ],
    [
      "more scopes than are kept",
      { scope: `mcp:use ${many.join(" ")}` },
      "the token has more than 1000 values in scope: have the issuer send fewer",
    ],
    [
      "a group with a longer name than is kept",
      { groups: ["eng", "g".repeat(257)] },
      "the token has a value of more than 256 characters in groups",
    ],
    [
      "its groups left out, as Entra does it for users with many",
      {
        _claim_names: { groups: "src1" },
        _claim_sources: { src1: { endpoint: "https://graph.example.com" } },
      },
      "the token leaves its groups out (_claim_names): have the issuer send fewer",
    ],
  ])("with %s", async (_, claims, reason) => {
    expect(await stage.send(await stage.issuer.sign(claims))).toMatchObject(refusal(reason));
  });

  test("that is not valid yet; clocks may differ by 30 s", async () => {
    expect(await stage.send(await stage.issuer.sign({ nbf: stage.now() + 30 }))).toMatchObject({
      name: "corp:alice",
    });
    expect(await stage.send(await stage.issuer.sign({ nbf: stage.now() + 31 }))).toMatchObject(
      refusal("the token is not valid yet (nbf)"),
    );
  });

  test("that expired; clocks may differ by 30 s", async () => {
    expect(await stage.send(await stage.issuer.sign({ exp: stage.now() - 29 }))).toMatchObject({
      name: "corp:alice",
    });
    expect(await stage.send(await stage.issuer.sign({ exp: stage.now() - 31 }))).toMatchObject(
      refusal("the token expired"),
    );
  });

  test.each([
    ["an ID token (nonce)", { nonce: "n" }, {}],
    ["an ID token (at_hash)", { at_hash: "h" }, {}],
    ["an ID token of Keycloak", { typ: "ID" }, { typ: "JWT" }],
    ["a refresh token of Keycloak", { typ: "Refresh" }, { typ: "JWT" }],
    ["a logout token", { events: {} }, { typ: "JWT" }],
    ["an ID token of Cognito", { token_use: "id" }, { typ: "JWT" }],
  ])("that is %s", async (_, claims, header) => {
    expect(await stage.send(await stage.issuer.sign(claims, header))).toMatchObject(noAccessToken);
  });

  test.each([
    ["a key of its client (DPoP)", { jkt: "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I" }],
    ["a certificate and a key", { "x5t#S256": "a", jkt: "b" }],
    ["an empty certificate", { "x5t#S256": "" }],
    ["nothing that can be read", "key"],
    ["nothing", {}],
  ])("that is bound to %s", async (_, cnf) => {
    expect(await stage.send(await stage.issuer.sign({ cnf }))).toMatchObject(
      refusal(
        "the token is bound to a key of its client (cnf), as with DPoP, which is not checked here: ask for a plain bearer token",
      ),
    );
  });

  test("that is bound to a certificate, on a connection without one", async () => {
    const token = await stage.issuer.sign({ cnf: { "x5t#S256": "a" } });
    expect(await stage.send(token)).toMatchObject(boundToCertificate);
  });

  test("of another type by its header", async () => {
    expect(await stage.send(await stage.issuer.sign({}, { typ: "dpop+jwt" }))).toMatchObject({
      refused: 401,
    });
  });

  test("that is not a token at all", async () => {
    for (const token of ["abc", "a.b.c", "..", `${"a".repeat(9000)}.b.c`])
      expect(await stage.send(token)).toMatchObject({ refused: 401 });
  });

  test("with a critical header that is not known here", async () => {
    const [, payload, signature] = (await stage.issuer.sign()).split(".");
    const header = { alg: "ES256", kid: "one", typ: "at+jwt", crit: ["made-up"], "made-up": 1 };
    const encoded = Buffer.from(JSON.stringify(header)).toString("base64url");
    expect(await stage.send(`${encoded}.${payload}.${signature}`)).toMatchObject({ refused: 401 });
  });

  test("and no word of it is shown: 8 digits of its hash are", async () => {
    const token = await stage.issuer.sign({
      sub: "secret-subject",
      aud: "https://secret-audience.example.com",
    });
    const answer = await stage.send(token);
    const shown = JSON.stringify([answer, stage.refused.at(-1), stage.warnings]);
    expect(stage.refused.at(-1)?.token).toMatch(/^[0-9a-f]{8}$/);
    expect(shown).not.toContain("secret-");
    for (const part of token.split(".")) expect(shown).not.toContain(part);
  });
});

describe("a request", () => {
  test("without a token is challenged, and gets no error", async () => {
    const { authenticate } = await createStage();
    const challenge = `Bearer resource_metadata="${metadataUrl}", scope="mcp:use"`;
    for (const header of [undefined, "Basic YTpi", ""])
      expect(await authenticate(() => header, { path: "/mcp" })).toMatchObject({ refused: 401, challenge });
  });

  test("with a header that cannot be read is refused with 400", async () => {
    const { authenticate } = await createStage();
    for (const header of ["Bearer", "Bearer a b", "Bearer \u00FC"])
      expect(await authenticate(() => header, { path: "/mcp" })).toMatchObject({
        refused: 400,
        challenge: `Bearer error="invalid_request", resource_metadata="${metadataUrl}", scope="mcp:use"`,
      });
  });

  test("with a token that is refused gets the reason", async () => {
    const { issuer, send } = await createStage();
    expect(await send(await issuer.sign({ exp: 1 }))).toMatchObject({
      challenge: `Bearer error="invalid_token", error_description="the token expired", resource_metadata="${metadataUrl}", scope="mcp:use"`,
    });
  });

  test("with a token that lacks a scope is refused with 403 and all scopes that are needed", async () => {
    const { issuer, send } = await createStage({ scopes: ["mcp:use", "mcp:read"] });
    expect(await send(await issuer.sign({ scope: "mcp:use" }))).toMatchObject({
      refused: 403,
      challenge: `Bearer error="insufficient_scope", resource_metadata="${metadataUrl}", scope="mcp:use mcp:read"`,
    });
  });

  test("to a path below the endpoint needs a token for that path", async () => {
    const { issuer, send } = await createStage();
    const [main, github] = await Promise.all([issuer.sign(), issuer.sign({ aud: `${publicUrl}/github` })]);
    expect(await send(main, "/mcp")).toMatchObject({ name: "corp:alice" });
    expect(await send(github, "/mcp/github")).toMatchObject({ name: "corp:alice" });
    expect(await send(main, "/mcp/github")).toMatchObject({
      refused: 401,
      challenge: expect.stringContaining(`resource_metadata="${metadataUrl}/github"`) as string,
    });
    expect(await send(github, "/mcp")).toMatchObject({ refused: 401 });
    expect(await send(github, "/mcp/other")).toMatchObject({ refused: 401 });
  });

  test("of a caller of another audience is let in where the config names that audience", async () => {
    const { issuer, send } = await createStage({ audience: ["api://mcp", "other"] });
    expect(await send(await issuer.sign({ aud: "api://mcp" }))).toMatchObject({ name: "corp:alice" });
    expect(await send(await issuer.sign())).toMatchObject({ refused: 401 });
  });
});

describe("the metadata of the resource", () => {
  const isServed = (path: string): boolean => path === "/mcp/github";

  test("is at its path and at the root", async () => {
    const { issuer, authenticate } = await createStage();
    const document = {
      resource: publicUrl,
      authorization_servers: [issuer.url],
      scopes_supported: ["mcp:use"],
      bearer_methods_supported: ["header"],
    };
    for (const end of ["", "/mcp"])
      expect(
        authenticate.documentAt?.(`/.well-known/oauth-protected-resource${end}`, isServed)?.value,
      ).toEqual(document);
    const below = authenticate.documentAt?.("/.well-known/oauth-protected-resource/mcp/github", isServed);
    expect(below?.value).toEqual({ ...document, resource: `${publicUrl}/github` });
  });

  test("is nowhere else", async () => {
    const { authenticate } = await createStage();
    for (const end of ["/mcp/other", "/other", "mcp", "/mcp/"])
      expect(
        authenticate.documentAt?.(`/.well-known/oauth-protected-resource${end}`, isServed),
      ).toBeUndefined();
  });
});

describe("keys of an issuer", () => {
  test("that are new are fetched when a token names them", async () => {
    const { issuer, send } = await createStage();
    await send(await issuer.sign());
    await issuer.addKey("two");
    issuer.removeKey("one");
    const tokens = await Promise.all(
      Array.from({ length: 20 }, (_, sub) => issuer.sign({ sub: `s${sub}` }, { kid: "two" })),
    );
    const callers = await Promise.all(tokens.map((token) => send(token)));
    expect(callers.every((caller) => typeof caller === "object" && "name" in caller)).toBe(true);
    expect(issuer.keyFetches()).toBe(2);
  });

  test("are fetched twice at most for a thousand ids that do not exist", async () => {
    const { issuer, send } = await createStage();
    await issuer.addKey("hidden", { isPublished: false });
    const base = (await issuer.sign({}, { kid: "hidden" })).split(".");
    for (let index = 0; index < 1000; index++) {
      const header = { alg: "ES256", typ: "at+jwt", kid: `made-up-${index}` };
      const forged = [Buffer.from(JSON.stringify(header)).toString("base64url"), base[1], base[2]].join(".");
      expect(await send(forged)).toMatchObject({ refused: 401 });
    }
    expect(issuer.keyFetches()).toBeLessThanOrEqual(2);
  });

  test("serve for an hour in which the issuer is down, also for new tokens", async () => {
    const { issuer, clock, send, warnings } = await createStage();
    await send(await issuer.sign());
    issuer.isDown = true;
    for (let minute = 0; minute <= 60; minute += 5) {
      expect(await send(await issuer.sign({ sub: `m${minute}` }))).toMatchObject({ name: `corp:m${minute}` });
      await clock.advance(5 * 60_000);
    }
    expect(warnings[0]).toContain("The issuer corp cannot be asked: https://id.example.com/realms/corp/keys");
  });

  test("serve for a day and no longer; then tokens cannot be checked, which is 503 and never a yes", async () => {
    const { issuer, clock, send } = await createStage();
    await send(await issuer.sign());
    issuer.isDown = true;
    await clock.advance(24 * 3_600_000);
    expect(await send(await issuer.sign())).toMatchObject({ refused: 503 });
    issuer.isDown = false;
    await clock.advance(1000);
    expect(await send(await issuer.sign({ sub: "back" }))).toMatchObject({ name: "corp:back" });
  });

  test("are renewed, so that one that was taken back is refused", async () => {
    const { issuer, clock, send } = await createStage();
    await issuer.addKey("two");
    await send(await issuer.sign());
    issuer.removeKey("one");
    await clock.advance(10 * 60_000);
    await send(await issuer.sign({ sub: "last" }));
    await expect.poll(() => issuer.keyFetches()).toBe(2);
    expect(await send(await issuer.sign({ sub: "later" }))).toMatchObject({ refused: 401 });
  });

  test("that cannot be fetched at all are not a reason to let a caller in", async () => {
    const { issuer, send } = await createStage();
    issuer.isDown = true;
    expect(await send(await issuer.sign())).toMatchObject({ refused: 503 });
  });
});

test("a token that was accepted is looked at again after five minutes, and when it expires", async () => {
  const { issuer, clock, send, now } = await createStage();
  const [short, long] = [await issuer.sign({ exp: now() + 100 }), await issuer.sign()];
  await send(short);
  await send(long);
  await clock.advance(131_000);
  expect(await send(short)).toMatchObject(refusal("the token expired"));
  expect(await send(long)).toMatchObject({ name: "corp:alice" });
  issuer.removeKey("one");
  await issuer.addKey("two");
  await clock.advance(10 * 60_000);
  await send(await issuer.sign({}, { kid: "two" }));
  await expect.poll(() => issuer.keyFetches()).toBe(2);
  expect(await send(long)).toMatchObject({ refused: 401 });
});

test("an issuer that calls itself something else is not believed, and the warning says why", async () => {
  const { issuer, send, warnings } = await createStage();
  issuer.metadata = { issuer: `${issuer.url}/` };
  expect(await send(await issuer.sign())).toMatchObject({ refused: 503 });
  expect(warnings).toEqual([
    `The issuer corp cannot be asked: tokens will be refused: the issuer calls itself "${issuer.url}/", not "${issuer.url}"`,
  ]);
});

describe("an opaque token", () => {
  interface Introspected extends Stage {
    readonly asked: string[];
    answer: { [member: string]: unknown };
    /** Whether the issuer knows a token. */
    isActive: (token: string) => boolean;
    /** Whether the issuer never answers about a token. */
    isStuck: (token: string) => boolean;
  }

  async function createOpaqueStage(): Promise<Introspected> {
    const url = "https://id.example.com/introspect";
    const introspection = { clientId: "gate way", clientSecret: "se:cret" };
    const stage = await createStage({ introspection });
    const asked: string[] = [];
    const opaque: Introspected = {
      ...stage,
      asked,
      isActive: () => true,
      isStuck: () => false,
      answer: { active: true, sub: "bob", aud: publicUrl, scope: "mcp:use", exp: stage.now() + 600 },
    };
    stage.issuer.metadata = { introspection_endpoint: url };
    const usual = stage.issuer.fetch;
    Object.assign(stage.issuer, {
      fetch: async (at: string, init: RequestInit) => {
        if (at !== url || stage.issuer.isDown) return usual(at, init);
        const { authorization } = init.headers as { authorization: string };
        asked.push(`${Buffer.from(authorization.slice(6), "base64").toString()} ${init.body as string}`);
        const token = new URLSearchParams(init.body as string).get("token") ?? "";
        if (opaque.isStuck(token)) await new Promise(() => {});
        return Response.json(opaque.isActive(token) ? opaque.answer : { active: false });
      },
    });
    return opaque;
  }

  test("is looked up at the issuer, and the answer is kept for 30 s", async () => {
    const stage = await createOpaqueStage();
    expect(await stage.send("opaque-1")).toMatchObject({ name: "corp:bob", scopes: ["mcp:use"] });
    await stage.send("opaque-1");
    expect(stage.asked).toEqual(["gate%20way:se%3Acret token=opaque-1&token_type_hint=access_token"]);
    await stage.clock.advance(30_000);
    stage.answer = { active: false };
    expect(await stage.send("opaque-1")).toMatchObject(refusal("the token is not known, or it expired"));
    expect(stage.asked).toHaveLength(2);
  });

  test.each([
    ["is for another audience", { aud: "https://other.example.com" }],
    ["names no audience", { aud: undefined }],
    ["is of another issuer", { iss: "https://evil.example.com" }],
    ["expired", { exp: start / 1000 - 31 }],
    ["names no subject", { sub: undefined }],
    ["is not a bearer token", { token_type: "DPoP" }],
    ["is active only by name", { active: "true" }],
    ["is bound to a key of its client (DPoP)", { cnf: { jkt: "a" } }],
    ["is bound to a certificate", { cnf: { "x5t#S256": "a" } }],
    ["is a refresh token by its type", { token_type: "refresh_token" }],
    ["is a refresh token by its use", { token_use: "refresh_token" }],
    ["is a refresh token of Keycloak", { typ: "Refresh" }],
    ["is an ID token by its use", { token_use: "id" }],
    ["has an expiry that cannot be read", { exp: "tomorrow" }],
  ])("that %s is refused", async (_, members) => {
    const stage = await createOpaqueStage();
    Object.assign(stage.answer, members);
    expect(await stage.send("opaque-2")).toMatchObject({ refused: 401 });
  });

  test("that says it is an access token is accepted", async () => {
    const stage = await createOpaqueStage();
    Object.assign(stage.answer, { token_type: "Bearer", token_use: "access_token", typ: "Bearer" });
    expect(await stage.send("opaque-2")).toMatchObject({ name: "corp:bob" });
  });

  test("without an expiry is good for five minutes, and so are the streams of its caller", async () => {
    const stage = await createOpaqueStage();
    stage.answer["exp"] = undefined;
    expect(await stage.send("opaque-2")).toMatchObject({ expiresAt: start + 300_000 });
  });

  test("cannot be checked while the issuer is down: 503", async () => {
    const stage = await createOpaqueStage();
    stage.issuer.isDown = true;
    expect(await stage.send("opaque-3")).toMatchObject({ refused: 503 });
  });

  test("that was revoked is asked about once, and not for each request", async () => {
    const stage = await createOpaqueStage();
    await stage.send("opaque-5");
    await stage.clock.advance(30_000);
    stage.isActive = () => false;
    for (let request = 0; request < 3; request++)
      expect(await stage.send("opaque-5")).toMatchObject({ refused: 401 });
    expect(stage.asked).toHaveLength(2);
  });

  describe("among many that are made up", () => {
    const strangersAt = "192.0.2.1";

    interface Attack {
      /** The most questions to the issuer in any second so far. */
      mostASecond(): number;
      /** Lets time pass. */
      pass(ms: number): Promise<void>;
    }

    /** Strangers of one address, each of whom sends one made-up token after the other. */
    function attack(stage: Introspected, strangers: number): Attack {
      stage.isActive = (token) => token.startsWith("good");
      const times: number[] = [];
      let seen = stage.asked.length;
      let tokens = 0;
      const next = async (): Promise<void> => {
        const answer = await stage.send(`made-up-${tokens++}`, "/mcp", strangersAt);
        expect(answer).toHaveProperty("refused");
        stage.clock.timer(1, () => void next());
      };
      for (let stranger = 0; stranger < strangers; stranger++) void next();
      return {
        mostASecond: () =>
          Math.max(...times.map((at) => times.filter((each) => each >= at && each < at + 1000).length)),
        pass: async (ms) => {
          for (let passed = 0; passed < ms; passed += 50) {
            await stage.clock.advance(50);
            for (; seen < stage.asked.length; seen++) times.push(stage.clock.now());
          }
        },
      };
    }

    /** Whether a promise has settled. */
    const hasSettled = (promise: Promise<unknown>): Promise<boolean> =>
      Promise.race([promise.then(() => true), Promise.resolve().then(() => Promise.resolve(false))]);

    test("is served at once if it was good before, and the issuer is asked 20 times a second at most", async () => {
      const stage = await createOpaqueStage();
      const callers = Array.from({ length: 39 }, (_, index) => `good-${index}`);
      const first = Promise.all(callers.map((token) => stage.send(token, "/mcp", strangersAt)));
      await stage.clock.advance(5000);
      await first;
      const { pass, mostASecond } = attack(stage, 256);
      for (let second = 0; second < 90; second++) {
        await pass(1000);
        for (const token of callers)
          expect(await stage.send(token, "/mcp", strangersAt)).toMatchObject({ name: "corp:bob" });
      }
      const timesAsked = (token: string): number =>
        stage.asked.filter((each) => each.includes(`token=${token}&`)).length;
      expect(Math.min(...callers.map(timesAsked))).toBeGreaterThanOrEqual(3);
      expect(mostASecond()).toBeLessThanOrEqual(20);
    });

    test("has its turn if it is new: at once from another address, and after theirs from the same", async () => {
      const stage = await createOpaqueStage();
      const { pass } = attack(stage, 256);
      await pass(1000);
      const apart = stage.send("good-apart", "/mcp", "192.0.2.2");
      const beside = stage.send("good-beside", "/mcp", strangersAt);
      await pass(200);
      expect(await hasSettled(apart)).toBe(true);
      expect(await apart).toMatchObject({ name: "corp:bob" });
      await pass(24_000);
      expect(await hasSettled(beside)).toBe(true);
      expect(await beside).toMatchObject({ name: "corp:bob" });
    });

    test("is not served without a new answer of the issuer for longer than a minute", async () => {
      const stage = await createOpaqueStage();
      await stage.send("good");
      stage.isStuck = (token) => token === "good";
      const { pass } = attack(stage, 256);
      await pass(59_000);
      expect(await stage.send("good")).toMatchObject({ name: "corp:bob" });
      await pass(1000);
      const late = stage.send("good");
      await pass(1000);
      expect(await hasSettled(late)).toBe(false);
    });

    test("cannot be checked where too many wait at its address: 503; another address has places left", async () => {
      const stage = await createOpaqueStage();
      stage.isStuck = () => true;
      const send = (count: number, address: string): Promise<Authenticated>[] =>
        Array.from({ length: count }, (_, index) => stage.send(`${address}-${index}`, "/mcp", address));
      const strangers = send(600, strangersAt);
      expect(await strangers.at(-1)).toMatchObject({ refused: 503 });
      const [other] = send(1, "192.0.2.2");
      await stage.clock.advance(24_000);
      expect(await hasSettled(other!)).toBe(false);
      // The issuer answers none of them, and some of its places are kept for tokens that were good before.
      expect(stage.asked).toHaveLength(24);
      await stage.clock.advance(1000);
      expect(await strangers.at(300)).toMatchObject({ refused: 503 });
    });
  });

  test("is refused where no issuer can be asked about it", async () => {
    const { send } = await createStage();
    expect(await send("opaque-4")).toMatchObject({ refused: 401 });
  });
});
