import { describe, expect, test } from "vitest";
import { until } from "../support/until.ts";
import { connectByKey, createVisitor } from "../support/visitor.ts";
import {
  askForLink,
  connectAs,
  idOf,
  keys,
  linkIn,
  namesOf,
  startStage,
  textOf,
  eventually,
} from "./stage.ts";

describe.each(["2026-07-28", "2025-11-25"] as const)(
  "a caller of %s whose client shows no pages",
  (revision) => {
    test("is given a link by the only tool it sees, and has the tools of its own account after that", async () => {
      const stage = await startStage();
      const client = await stage.as("ada", { revision });
      expect(await namesOf(client)).toEqual(["safe__connect"]);
      stage.idp.account = "a1";
      const page = await connectByKey(await askForLink(client), keys.ada, stage.idp);
      expect(page.text).toContain("Connected");
      await eventually(async () => expect(await namesOf(client)).toContain("safe__read"));
      expect(await textOf(client, "safe__read")).toBe("read");
      const { accountId } = (await stage.idp.find(stage.server.served.at(-1)?.token ?? "")) ?? {};
      expect(accountId).toBe("a1");
    });
  },
);

test("lists and calls of two callers use their own accounts, and nothing of one is seen by the other", async () => {
  const stage = await startStage();
  const ada = await connectAs(stage, "ada", "a1");
  const bob = await connectAs(stage, "bob", "b2");
  expect(await namesOf(ada)).toContain("safe__notes_of_a1");
  expect(await namesOf(bob)).toContain("safe__notes_of_b2");
  expect(await namesOf(ada)).not.toContain("safe__notes_of_b2");
  expect(await textOf(ada, "safe__notes_of_a1")).toBe("notes of a1");
  await expect(ada.callTool("safe__notes_of_b2")).rejects.toThrow("Unknown tool");
});

test("the events of an account are audited with its caller, each call says whose credential it used, and no secret is written", async () => {
  const stage = await startStage();
  const ada = await connectAs(stage, "ada", "a1");
  await textOf(ada, "safe__read");
  await eventually(() =>
    expect(stage.events().map(({ tool, caller, outcome }) => [tool, caller, outcome])).toEqual([
      ["credential.connect_started", "ada", "ok"],
      ["credential.connect_done", "ada", "ok"],
    ]),
  );
  await until(() => stage.written().includes('"tool":"safe__read"'));
  const text = stage.written();
  expect(text).toContain('"credential":"own"');
  expect(text).toContain('"decision":"connect"');
  const stored = (await stage.store.read(idOf(stage, ["ada"]))) as { [key: string]: string };
  for (const secret of [stored["accessToken"], stored["refreshToken"], keys.ada]) {
    expect(secret).toBeTruthy();
    expect(text).not.toContain(secret);
  }
});

test("many calls at the end of a token make one refresh for each caller", async () => {
  const stage = await startStage();
  const ada = await connectAs(stage, "ada", "a1");
  const bob = await connectAs(stage, "bob", "b2");
  for (const { token } of stage.server.served) stage.server.revoked.add(token);
  await Promise.all(
    Array.from({ length: 40 }, (_, index) => textOf(index % 2 === 0 ? ada : bob, "safe__read")),
  );
  const refreshes = stage.idp.tokenRequests.filter(({ grant }) => grant === "refresh_token");
  expect(refreshes).toEqual([
    { grant: "refresh_token", status: 200 },
    { grant: "refresh_token", status: 200 },
  ]);
});

test("a caller whose refresh token is no longer good is asked to connect again, with its tools still listed", async () => {
  const stage = await startStage();
  const ada = await connectAs(stage, "ada", "a1");
  const id = idOf(stage, ["ada"]);
  await stage.store.write(id, { ...(await stage.store.read(id)), refreshToken: "not good" });
  for (const { token } of stage.server.served) stage.server.revoked.add(token);
  const link = linkIn(await textOf(ada, "safe__read"));
  expect(await namesOf(ada)).toContain("safe__read");
  expect((await connectByKey(link, keys.ada, stage.idp)).text).toContain("Connected");
  expect(await textOf(ada, "safe__read")).toBe("read");
});

test("a tool that wants more access asks for it together with what was granted; others go on working", async () => {
  const stage = await startStage({
    server: { scopesOfWrite: "write", metadata: { scopes_supported: ["read"] } },
  });
  const ada = await connectAs(stage, "ada", "a1");
  const text = await textOf(ada, "safe__write");
  expect(text).toContain("more access");
  expect(await textOf(ada, "safe__read")).toBe("read");
  const visitor = createVisitor();
  const consent = await visitor.send(await visitor.open(linkIn(text)), { key: keys.ada });
  expect(consent.text).toContain("read write");
  await visitor.signIn(await visitor.send(consent), stage.idp);
  expect(await textOf(ada, "safe__write")).toBe("written");
});

test("a server that refuses every account has its person asked three times at most", async () => {
  const stage = await startStage({ server: { scopesOfWrite: "never", listsToAll: true } });
  let asked = 0;
  const elicitUrl = ({
    url,
  }: {
    readonly [name: string]: unknown;
  }): { action: "accept"; content: object } => {
    asked++;
    void connectByKey(String(url), keys.ada, stage.idp);
    return { action: "accept", content: {} };
  };
  const client = await stage.as("ada", { handlers: { elicitUrl } });
  expect(await textOf(client, "safe__write")).toContain("still refuses");
  expect(asked).toBe(3);
});

test("an account that is taken away is used no more, though its token would be good", async () => {
  const stage = await startStage();
  const ada = await connectAs(stage, "ada", "a1");
  await stage.store.remove(idOf(stage, ["ada"]));
  await expect.poll(() => textOf(ada, "safe__read"), { interval: 500 }).toContain("/connect/");
});

test("a caller that connects another account uses that from then on, and sees its lists", async () => {
  const stage = await startStage({
    server: { scopesOfWrite: "write", metadata: { scopes_supported: ["read"] } },
  });
  const ada = await connectAs(stage, "ada", "a1");
  const link = linkIn(await textOf(ada, "safe__write"));
  stage.idp.account = "a2";
  await connectByKey(link, keys.ada, stage.idp);
  const before = stage.server.served.length;
  await eventually(async () => expect(await namesOf(ada)).toContain("safe__notes_of_a2"));
  expect(await namesOf(ada)).not.toContain("safe__notes_of_a1");
  expect(await textOf(ada, "safe__read")).toBe("read");
  const tokens = await Promise.all(
    stage.server.served.slice(before).map(({ token }) => stage.idp.find(token)),
  );
  expect(new Set(tokens.map((token) => token?.accountId))).toEqual(new Set(["a2"]));
});

test("rules about a server whose lists are its callers' are not called useless", async () => {
  const stage = await startStage({ safe: { deny: ["delete_*"] }, junctor: { deny: ["safe__drop_*"] } });
  await connectAs(stage, "ada", "a1");
  expect(stage.written()).not.toContain("matches nothing");
  expect(stage.written()).not.toMatch(/delete_\*|drop_\*/);
});
