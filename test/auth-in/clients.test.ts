import * as v2 from "@modelcontextprotocol/client";
import { describe, expect, onTestFinished, test } from "vitest";
import type { Revision } from "../../packages/core/src/mcp/revision.ts";
import { connect } from "../../packages/junctor/src/index.ts";
import { modern, modernPost } from "../support/http-wire.ts";
import { exchange } from "../support/raw-http.ts";
import { apiKey, type AuthStage, startStage } from "./stage.ts";

const eras = ["2026-07-28", "2025-11-25"] as const;
const rules = [
  { deny: ["*delete_*"], unless: "'admin' in caller.groups" },
  { scope: "write", tools: ["*create_*"] },
];

describe.each(eras)("our client in %s before a gateway with issuers", (revision) => {
  test("signs in once, is known by name, and sees what it may call", async () => {
    const { idp, url, calls } = await startStage({ idp: { groups: ["eng"] }, junctor: { rules } });
    const opened: string[] = [];
    const open = (page: string): Promise<string> => {
      opened.push(page);
      return idp.browse(page);
    };
    await using client = await connect(url, { revision, authorization: { open } });
    const names = (await client.listTools()).map(({ name }) => name);
    expect(names).toEqual(["search", "create_issue"]);
    expect((await client.callTool("search")).content).toEqual([
      { type: "text", text: "search for corp:alice" },
    ]);
    await expect(client.callTool("delete_repo")).rejects.toThrow("Unknown tool: delete_repo");
    expect(opened).toHaveLength(1);
    // It asks for more where a tool wants more, and keeps what it had.
    expect((await client.callTool("create_issue")).content).toEqual([
      { type: "text", text: "create_issue for corp:alice" },
    ]);
    const scopes = opened.map((page) => new URL(page).searchParams.get("scope")?.split(" "));
    expect(scopes.at(-1)).toEqual(expect.arrayContaining(["read", "write"]));
    expect(calls).toEqual([
      ["search", "corp:alice"],
      ["create_issue", "corp:alice"],
    ]);
  });
});

type KnownClient = Parameters<NonNullable<v2.OAuthClientProvider["saveClientInformation"]>>[0];
type KnownTokens = Parameters<v2.OAuthClientProvider["saveTokens"]>[0];

/** What the official client keeps of a sign-in, in memory. */
class MemoryProvider implements v2.OAuthClientProvider {
  readonly redirectUrl = "http://127.0.0.1:9/callback";
  readonly clientMetadata = {
    client_name: "official",
    redirect_uris: [this.redirectUrl],
    grant_types: ["authorization_code", "refresh_token"],
    token_endpoint_auth_method: "none",
    application_type: "native",
  };
  page: URL | undefined;
  #client: KnownClient | undefined;
  #tokens: KnownTokens | undefined;
  #verifier = "";

  clientInformation(): ReturnType<v2.OAuthClientProvider["clientInformation"]> {
    return this.#client;
  }
  saveClientInformation(client: KnownClient): void {
    this.#client = client;
  }
  tokens(): ReturnType<v2.OAuthClientProvider["tokens"]> {
    return this.#tokens;
  }
  saveTokens(tokens: KnownTokens): void {
    this.#tokens = tokens;
  }
  redirectToAuthorization(page: URL): void {
    this.page = page;
  }
  saveCodeVerifier(verifier: string): void {
    this.#verifier = verifier;
  }
  codeVerifier(): string {
    return this.#verifier;
  }
}

async function connectOfficial({ idp, url }: AuthStage, revision: Revision): Promise<v2.Client> {
  const authProvider = new MemoryProvider();
  const mode =
    revision === "2026-07-28"
      ? { versionNegotiation: { mode: { pin: revision } } }
      : { supportedProtocolVersions: [revision] };
  const make = (): v2.StreamableHTTPClientTransport =>
    new v2.StreamableHTTPClientTransport(new URL(url), { authProvider });
  const createClient = (): v2.Client => new v2.Client({ name: "sdk-v2", version: "1.0.0" }, mode);
  const first = make();
  await expect(createClient().connect(first)).rejects.toThrow(/./);
  await first.finishAuth(new URL(await idp.browse(authProvider.page!.href)).searchParams);
  const client = createClient();
  await client.connect(make());
  onTestFinished(() => client.close());
  return client;
}

describe.each(eras)("the official client in %s before a gateway with issuers", (revision) => {
  test("signs in and calls", async () => {
    const stage = await startStage({ junctor: { rules } });
    const client = await connectOfficial(stage, revision);
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(["search", "create_issue"]);
    expect((await client.callTool({ name: "search", arguments: {} })).content).toEqual([
      { type: "text", text: "search for corp:alice" },
    ]);
    expect(stage.calls).toEqual([["search", "corp:alice"]]);
  });
});

test("an opaque token is looked up at the issuer", async () => {
  const introspection = { clientId: "gateway", clientSecret: "a secret that only the gateway has" };
  const known = {
    client_id: introspection.clientId,
    client_secret: introspection.clientSecret,
    grant_types: [],
    redirect_uris: [],
    response_types: [],
  };
  const { idp, url } = await startStage({
    idp: { tokens: "opaque", clients: [known] },
    issuer: { introspection },
  });
  await using client = await connect(url, { authorization: { open: (page) => idp.browse(page) } });
  expect((await client.callTool("search")).content).toEqual([
    { type: "text", text: "search for corp:alice" },
  ]);
});

test("a key goes on working beside issuers, and is not a token", async () => {
  const { url, port, idp } = await startStage();
  await using client = await connect(url, { headers: { authorization: `Bearer ${apiKey}` } });
  expect((await client.callTool("search")).content).toEqual([{ type: "text", text: "search for ada" }]);
  const wrong = modernPost(modern("tools/list"), { authorization: "Bearer 0123456789abcdef-kez" });
  const reply = await exchange(port, wrong);
  expect([reply.status, reply.headers["www-authenticate"]]).toEqual([
    401,
    `Bearer error="invalid_token", error_description="the token is not known, or it expired", resource_metadata="http://127.0.0.1:${port}/.well-known/oauth-protected-resource/mcp", scope="read"`,
  ]);
  expect(idp.tokenRequests).toEqual([]);
});

test("a token that is refused is in the log by 8 digits of its hash", async () => {
  const { port, log } = await startStage();
  const token = "a-token-that-no-issuer-knows";
  await exchange(port, modernPost(modern("tools/list"), { authorization: `Bearer ${token}` }));
  const [line] = log.filter((each) => each.startsWith("a token was refused"));
  expect(line).toMatch(/"token":"[0-9a-f]{8}"/);
  expect(log.join("\n")).not.toContain(token);
});
