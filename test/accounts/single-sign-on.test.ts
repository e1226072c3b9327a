import { expect, test } from "vitest";
import { connect, type Client } from "../../packages/junctor/src/index.ts";
import { createVisitor, type SeenPage, type Visitor } from "../support/visitor.ts";
import {
  type AccountStage,
  askForLink,
  idOf,
  keys,
  namesOf,
  startStage,
  textOf,
  eventually,
} from "./stage.ts";

/** A client whose person signs in at the issuer of callers. */
async function connectByToken(
  { url, corp }: AccountStage,
  revision: "2026-07-28" | "2025-11-25" = "2026-07-28",
): Promise<Client> {
  return connect(url, { revision, authorization: { open: (page) => corp!.browse(page) } });
}

/** Shows at the issuer who the visitor is, and gives the page that it leads back to. */
async function identify(stage: AccountStage, link: string, visitor: Visitor): Promise<SeenPage> {
  return visitor.signIn(await visitor.send(await visitor.open(link)), stage.corp!);
}

test.each(["2026-07-28", "2025-11-25"] as const)(
  "a caller with a token of %s signs in at its issuer, then at the server, and uses its own account",
  async (revision) => {
    const stage = await startStage({ hasIssuer: true });
    await using client = await connectByToken(stage, revision);
    expect(await namesOf(client)).toEqual(["safe__connect"]);
    const visitor = createVisitor();
    const consent = await identify(stage, await askForLink(client), visitor);
    expect(consent.text).toContain("corp:alice");
    stage.idp.account = "a1";
    const done = await visitor.signIn(await visitor.send(consent), stage.idp);
    expect(done.text).toContain("Connected");
    expect(await textOf(client, "safe__notes_of_a1")).toBe("notes of a1");
    const owner = ["corp:alice", stage.corp?.issuer, "alice"];
    expect(await stage.store.read(idOf(stage, owner))).toBeDefined();
  },
);

test("another person who is signed in at the issuer, and was given the link, connects nothing", async () => {
  const stage = await startStage({ hasIssuer: true });
  await using client = await connectByToken(stage);
  const link = await askForLink(client);
  stage.corp!.account = "bob";
  const page = await identify(stage, link, createVisitor());
  expect([page.status, page.text]).toEqual([403, expect.stringContaining("You are not the caller")]);
  expect(stage.idp.tokenRequests).toEqual([]);
  await eventually(() =>
    expect(stage.events().at(-1)).toMatchObject({ tool: "credential.connect_refused", caller: "corp:alice" }),
  );
});

test("an answer of the issuer that comes to another browser proves nothing", async () => {
  const stage = await startStage({ hasIssuer: true });
  await using client = await connectByToken(stage);
  const visitor = createVisitor();
  const leaving = await visitor.send(await visitor.open(await askForLink(client)));
  const callback = await stage.corp!.browse(leaving.leadsTo ?? "");
  expect((await createVisitor().open(callback)).status).toBe(403);
  expect((await visitor.open(callback)).status).toBe(403);
});

test("a key does not prove to be a caller with a token", async () => {
  const stage = await startStage({ hasIssuer: true });
  await using client = await connectByToken(stage);
  const visitor = createVisitor();
  const page = await visitor.send(await visitor.open(await askForLink(client)), { key: keys.ada });
  expect(page.leadsTo).toContain(stage.corp?.issuer);
});

test("the sign-in at the issuer asks for who the person is, and for nothing else", async () => {
  const stage = await startStage({ hasIssuer: true });
  await using client = await connectByToken(stage);
  const visitor = createVisitor();
  const { leadsTo = "" } = await visitor.send(await visitor.open(await askForLink(client)));
  const { searchParams } = new URL(leadsTo);
  expect(searchParams.get("scope")).toBe("openid");
  expect(searchParams.get("code_challenge_method")).toBe("S256");
  expect(searchParams.get("nonce")).toMatch(/.{20}/);
  expect(searchParams.get("redirect_uri")).toBe(`${new URL(stage.url).origin}/oauth/identity/corp`);
});

test("the gateway describes itself to authorization servers", async () => {
  const stage = await startStage({ hasIssuer: true });
  const { origin } = new URL(stage.url);
  expect(await (await fetch(`${origin}/oauth/client.json`)).json()).toMatchObject({
    client_id: `${origin}/oauth/client.json`,
    redirect_uris: [`${origin}/oauth/callback/safe`, `${origin}/oauth/identity/corp`],
    token_endpoint_auth_method: "none",
  });
});
