import { describe, expect, test, vi } from "vitest";
import type { Client } from "../../src/index.ts";
import { connectByKey } from "../support/visitor.ts";
import { type AccountStage, keys, linkIn, startStage } from "./stage.ts";

async function namesOf(client: Client): Promise<readonly string[]> {
  return (await client.listTools()).map(({ name }) => name);
}

async function textOf(client: Client, tool: string): Promise<string> {
  const { content } = await client.callTool(tool);
  return content.map((item) => ("text" in item ? item.text : "")).join("");
}

/** Connects the account of a caller by the tool for that. */
async function connectAs(stage: AccountStage, caller: "ada" | "bob", account: string): Promise<Client> {
  const client = await stage.as(caller);
  const link = linkIn(await textOf(client, "safe__connect"));
  stage.idp.account = account;
  const page = await connectByKey(link, keys[caller], stage.idp);
  expect(page.text).toContain("Connected");
  return client;
}

describe.each(["2026-07-28", "2025-11-25"] as const)(
  "a caller of %s whose client shows no pages",
  (revision) => {
    test("is given a link by the only tool it sees, and has the tools of its own account after that", async () => {
      const stage = await startStage();
      const client = await stage.as("ada", { revision });
      expect(await namesOf(client)).toEqual(["safe__connect"]);
      const link = linkIn(await textOf(client, "safe__connect"));
      stage.idp.account = "a1";
      expect((await connectByKey(link, keys.ada, stage.idp)).text).toContain("Connected");
      await vi.waitFor(async () => expect(await namesOf(client)).toContain("safe__read"));
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
  await vi.waitFor(async () => expect(await namesOf(ada)).toContain("safe__notes_of_a1"));
  await vi.waitFor(async () => expect(await namesOf(bob)).toContain("safe__notes_of_b2"));
  expect(await namesOf(ada)).not.toContain("safe__notes_of_b2");
  expect(await textOf(ada, "safe__notes_of_a1")).toBe("notes of a1");
  await expect(ada.callTool("safe__notes_of_b2")).rejects.toThrow("Unknown tool");
});
