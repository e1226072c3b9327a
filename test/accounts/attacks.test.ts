import { once } from "node:events";
import { createServer } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { connect } from "../../packages/junctor/src/index.ts";
import { exchange } from "../support/raw-http.ts";
import { createVisitor, connectByKey, type SeenPage, type Visitor } from "../support/visitor.ts";
import { type AccountStage, askForLink, idOf, keys, startStage, textOf, eventually } from "./stage.ts";

interface Scene extends AccountStage {
  readonly link: string;
  readonly visitor: Visitor;
}

/** Ada has asked for a link. */
async function begin(): Promise<Scene> {
  const stage = await startStage();
  return { ...stage, link: await askForLink(await stage.as("ada")), visitor: createVisitor() };
}

/** Ada is on the page that asks whether she agrees. */
async function atConsent(scene: Scene): Promise<SeenPage> {
  const page = await scene.visitor.send(await scene.visitor.open(scene.link), { key: keys.ada });
  expect(page.text).toContain("You sign in at");
  return page;
}

/** The address that her sign-in leads back to. */
async function atCallback(scene: Scene): Promise<string> {
  const leaving = await scene.visitor.send(await atConsent(scene));
  return scene.idp.browse(leaving.leadsTo ?? "");
}

async function expectNothing({ store, idp, server }: Scene): Promise<void> {
  for (const name of ["ada", "bob"])
    expect(await store.read(JSON.stringify(["credential", server.url, JSON.stringify([name])]))).toBe(
      undefined,
    );
  expect(idp.tokenRequests).toEqual([]);
}

test("Bob, who was given Ada's link, connects nothing with his own key", async () => {
  const scene = await begin();
  const bob = createVisitor();
  const page = await bob.send(await bob.open(scene.link), { key: keys.bob });
  expect([page.status, page.text]).toEqual([403, expect.stringContaining("You are not the caller")]);
  expect(page.leadsTo).toBeUndefined();
  await expectNothing(scene);
  await eventually(() =>
    expect(scene.events()).toMatchObject([
      {
        tool: "credential.connect_refused",
        caller: "ada",
        outcome: "refused",
        reason: "the visitor is not the caller",
      },
    ]),
  );
  expect(scene.written()).not.toContain(keys.bob);
});

test("a link ends after five visitors that were not the caller", async () => {
  const scene = await begin();
  for (let tries = 0; tries < 5; tries++) {
    const visitor = createVisitor();
    expect(
      (await visitor.send(await visitor.open(scene.link), { key: `no-key-${tries}-0123456789` })).status,
    ).toBe(403);
  }
  expect((await createVisitor().open(scene.link)).status).toBe(410);
});

test("a link connects once", async () => {
  const scene = await begin();
  expect((await connectByKey(scene.link, keys.ada, scene.idp, scene.visitor)).text).toContain("Connected");
  expect((await scene.visitor.open(scene.link)).status).toBe(410);
  expect((await createVisitor().open(scene.link)).status).toBe(410);
});

test.each([
  ["another site", { origin: "https://evil.example" }],
  ["a page that hides its origin", { origin: "null" }],
  ["another port of this machine", { origin: "http://127.0.0.1:9" }],
  ["a browser that says so", { "sec-fetch-site": "cross-site" }],
])("a form that %s sends is refused, also with the right key", async (_, headers) => {
  const scene = await begin();
  const page = await scene.visitor.send(await scene.visitor.open(scene.link), { key: keys.ada }, headers);
  expect([page.status, page.leadsTo]).toEqual([403, undefined]);
  await expectNothing(scene);
});

test("a form without an origin is refused", async () => {
  const { link, visitor } = await begin();
  const page = await visitor.open(link);
  const cookie = [...visitor.cookies].map(([name, value]) => `${name}=${value}`).join("; ");
  const { port, pathname } = new URL(link);
  const body = new URLSearchParams({ ...page.fields, key: keys.ada }).toString();
  const headers = [
    ["Cookie", cookie],
    ["Content-Type", "application/x-www-form-urlencoded"],
  ] as const;
  const reply = await exchange(Number(port), { path: pathname, headers, body });
  expect(reply.status).toBe(403);
});

test("a form of one browser is refused from another", async () => {
  const scene = await begin();
  const mallory = createVisitor();
  const page = await mallory.open(scene.link);
  await scene.visitor.open(scene.link);
  expect((await scene.visitor.send(page, { key: keys.ada })).status).toBe(403);
  expect((await createVisitor().send(page, { key: keys.ada })).status).toBe(403);
  await expectNothing(scene);
});

test("a cookie of an earlier step is refused in a later one", async () => {
  const scene = await begin();
  const first = await scene.visitor.open(scene.link);
  const planted = new Map(scene.visitor.cookies);
  const consent = await scene.visitor.send(first, { key: keys.ada });
  const mallory = createVisitor();
  for (const [name, value] of planted) mallory.cookies.set(name, value);
  expect((await mallory.send(consent)).status).toBe(403);
  // The page itself goes on in its own browser.
  expect((await scene.visitor.send(consent)).leadsTo).toContain(scene.idp.issuer);
  // And it does so once.
  expect((await scene.visitor.send(consent)).status).not.toBe(200);
});

test("consent needs the word of its page", async () => {
  const scene = await begin();
  const consent = await atConsent(scene);
  expect((await scene.visitor.send(consent, { word: "guessed" })).status).toBe(403);
  await expectNothing(scene);
});

test("an answer that comes to another browser is refused, and afterwards also in the right one", async () => {
  const scene = await begin();
  const callback = await atCallback(scene);
  const mallory = createVisitor();
  expect((await mallory.open(callback)).status).toBe(403);
  expect((await scene.visitor.open(callback)).status).toBe(403);
  await expectNothing(scene);
  await eventually(() =>
    expect(scene.events().at(-1)).toMatchObject({
      tool: "credential.connect_refused",
      reason: "the answer came to another browser or path",
    }),
  );
});

test.each([
  ["is missing", (url: URL) => url.searchParams.delete("state")],
  ["is another", (url: URL) => url.searchParams.set("state", "x".repeat(43))],
  ["comes twice", (url: URL) => url.searchParams.append("state", "x".repeat(43))],
  [
    "comes to the path of another server",
    (url: URL) => {
      url.pathname = "/oauth/callback/other";
    },
  ],
])("an answer whose state %s is refused", async (_, change) => {
  const scene = await begin();
  const callback = new URL(await atCallback(scene));
  change(callback);
  expect((await scene.visitor.open(callback.href)).status).toBe(403);
  await expectNothing(scene);
});

test("an answer of another authorization server is refused before its code is used", async () => {
  const scene = await begin();
  const callback = new URL(await atCallback(scene));
  callback.searchParams.set("iss", "https://evil.example");
  expect((await scene.visitor.open(callback.href)).status).toBe(502);
  await expectNothing(scene);
});

test("an answer is good once", async () => {
  const scene = await begin();
  const callback = await atCallback(scene);
  expect((await scene.visitor.open(callback)).text).toContain("Connected");
  expect((await scene.visitor.open(callback)).status).toBe(403);
  expect(scene.idp.tokenRequests).toHaveLength(1);
  const code = new URL(callback).searchParams.get("code") ?? "";
  expect(code).not.toBe("");
  expect(scene.written()).not.toContain(code);
});

test("Mallory's answer, opened in Ada's browser, does not give Ada Mallory's account", async () => {
  const scene = await begin();
  const mallory = { ...scene, visitor: createVisitor(), link: await askForLink(await scene.as("bob")) };
  const leaving = await mallory.visitor.send(
    await mallory.visitor.send(await mallory.visitor.open(mallory.link), { key: keys.bob }),
  );
  const callback = await scene.idp.browse(leaving.leadsTo ?? "");
  await atConsent(scene);
  expect((await scene.visitor.open(callback)).status).toBe(403);
  await expectNothing(scene);
});

test("a caller whose key is removed in between connects nothing", async () => {
  const scene = await begin();
  const callback = await atCallback(scene);
  const { junctor, mcpServers } = scene.config;
  await scene.gateway.update({ mcpServers, junctor: { ...junctor, keys: { bob: { env: "BOB" } } } });
  expect((await scene.visitor.open(callback)).status).toBe(403);
  expect((await createVisitor().open(scene.link)).status).toBe(410);
  await expectNothing(scene);
});

test("a server that is given another URL in between gets no account", async () => {
  const scene = await begin();
  const callback = await atCallback(scene);
  const { junctor } = scene.config;
  await scene.gateway.update({ mcpServers: { safe: { url: `${scene.server.url}?x` } }, junctor });
  expect((await scene.visitor.open(callback)).status).toBe(410);
  await expectNothing(scene);
});

test.each(
  ["", "x", "v1.AAAA", `v1.${"A".repeat(5000)}`, "..%2f..", "%00"].map((token, number) => [number, token]),
)("a link that is none, number %i, is over", async (_, token) => {
  const { url } = await startStage();
  const page = await createVisitor().open(new URL(`/connect/${token}`, url).href);
  expect(page.status).toBe(410);
});

test("pages run nothing, are framed by no one, are kept nowhere and set cookies for themselves alone", async () => {
  const scene = await begin();
  const pages = [await scene.visitor.open(scene.link), await atConsent(scene)];
  for (const { headers } of pages) {
    expect(headers.get("content-security-policy")).toMatch(
      /^default-src 'none'; style-src 'sha256-[^;]*; form-action 'self'; frame-ancestors 'none'/,
    );
    expect(headers.get("x-frame-options")).toBe("DENY");
    expect(headers.get("cache-control")).toBe("no-store");
    expect(headers.get("referrer-policy")).toBe("same-origin");
    expect(headers.get("set-cookie")).toMatch(/; Path=\/; Max-Age=600; HttpOnly; SameSite=Lax$/);
  }
  expect(pages[1]?.text).toContain(`<dt>Caller</dt><dd>ada</dd>`);
  const leaving = await scene.visitor.send(pages[1] as SeenPage);
  expect(leaving.headers.get("referrer-policy")).toBe("no-referrer");
});

test("a request with another Host is refused before any page", async () => {
  const { link } = await begin();
  const { port, pathname } = new URL(link);
  const request = { method: "GET", path: pathname, host: "evil.example" };
  expect((await exchange(Number(port), request)).status).toBe(403);
});

test("a server that names a private address as its authorization server is not asked for it", async () => {
  let visits = 0;
  const trap = createServer((socket) => {
    visits++;
    socket.destroy();
  }).listen(0, "127.0.0.1");
  await once(trap, "listening");
  onTestFinished(() => void trap.close());
  const stage = await startStage({ server: { issuers: ["http://169.254.169.254/latest"] } });
  const visitor = createVisitor();
  const link = await askForLink(await stage.as("ada"));
  const page = await visitor.send(await visitor.open(link), { key: keys.ada });
  expect([page.status, visits]).toEqual([502, 0]);
});

test("names that are HTML are shown as text", async () => {
  const stage = await startStage({
    junctor: { keys: { "<script>x</script>": { env: "ADA" } } },
  });
  const client = await stage.as("ada");
  const page = await createVisitor().open(await askForLink(client));
  expect(page.text).toContain("&#60;script&#62;x");
  expect(page.text).not.toContain("<script");
});

test("callers without a name are one, and only a browser of this machine connects its account", async () => {
  const stage = await startStage({ hasKeys: false });
  await using client = await connect(stage.url);
  const link = await askForLink(client);
  const proxied = createVisitor({ "x-forwarded-for": "203.0.113.9" });
  expect((await proxied.send(await proxied.open(link))).status).toBe(403);
  expect((await connectByKey(link, "", stage.idp)).text).toContain("Connected");
  expect(await textOf(client, "safe__read")).toBe("read");
  expect(await stage.store.read(idOf(stage, "shared"))).toBeDefined();
});
