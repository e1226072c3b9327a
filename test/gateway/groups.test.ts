// Groups, a draft, through a gateway: those of servers, and servers and profiles as groups.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { withGroups } from "../../packages/core/src/provider/groups.ts";
import { listenHttp } from "../../packages/server/src/http/listen-http.ts";
import type { HttpListener } from "../../packages/server/src/http/node.ts";
import { createRegistry } from "../../packages/server/src/registry/registry.ts";
import { createServer } from "../../packages/server/src/wire/server.ts";
import { startTestGateway, type TestGateway } from "./support/gateway.ts";
import { createTaskCaller, type TaskCaller } from "./support/task-caller.ts";

const id = "io.modelcontextprotocol/groups";
const knowsGroups = { extensions: { [id]: {} } };

interface Named {
  readonly name: string;
}
const namesOf = (items: unknown): readonly string[] => (items as readonly Named[]).map(({ name }) => name);

const listen = (provider: Parameters<typeof createServer>[0]): Promise<HttpListener> =>
  listenHttp(createServer(provider, { name: "behind", version: "1" }), { port: 0 });

function createShop() {
  const registry = createRegistry();
  for (const name of ["search", "refund", "invoice"]) registry.register(name, {}, () => `${name} done`);
  const contents = { tools: ["refund", "invoice"] };
  return withGroups(registry, [{ name: "billing", description: "Invoices and refunds.", contents }]);
}

function createMail() {
  const registry = createRegistry();
  for (const name of ["read", "send"]) registry.register(name, {}, () => `${name} done`);
  return registry;
}

describe("a gateway that tries the draft", () => {
  let shop: HttpListener;
  let mail: HttpListener;
  let at: TestGateway;
  let ask: TaskCaller;
  let asOther: TaskCaller;
  const config = (junctor: object): object => ({
    mcpServers: { shop: { type: "http", url: shop.url }, mail: { type: "http", url: mail.url } },
    junctor,
  });
  beforeAll(async () => {
    shop = await listen(createShop());
    mail = await listen(createMail());
    at = await startTestGateway(
      config({
        drafts: ["groups"],
        servers: { mail: { group: "Reads and sends mail." } },
        profiles: { careful: { allow: ["shop__search"], group: "Only looks." } },
        deny: ["shop__invoice"],
      }),
    );
    ask = createTaskCaller(at.url, { capabilities: knowsGroups });
    asOther = createTaskCaller(at.url, { capabilities: {} });
  });
  afterAll(async () => {
    await at?.[Symbol.asyncDispose]();
    await shop?.close();
    await mail?.close();
  });

  test("merges the groups of servers, and serves servers and profiles as groups", async () => {
    const { result } = await ask("groups/list", {});
    expect(namesOf(result["groups"])).toEqual(["mail", "careful", "shop-billing"]);
    expect(namesOf((await ask("tools/list", {})).result["tools"])).toEqual([]);
  });

  test("gives the definitions in a group under public names, without what the caller may not use", async () => {
    const contentsOf = async (name: string): Promise<readonly string[]> => {
      const { result } = await ask("groups/get", { name });
      return namesOf((result["contents"] as { readonly tools: unknown }).tools);
    };
    expect(await contentsOf("shop-billing")).toEqual(["shop__refund"]);
    expect(await contentsOf("mail")).toEqual(["mail__read", "mail__send"]);
    expect(await contentsOf("careful")).toEqual(["shop__search"]);
    const { error } = await ask("groups/get", { name: "billing" });
    expect(error.code).toBe(-32002);
  });

  test("calls what is in a group, and refuses what is denied", async () => {
    expect((await ask("tools/call", { name: "shop__refund", arguments: {} })).result["content"]).toEqual([
      { type: "text", text: "refund done" },
    ]);
    expect((await ask("tools/call", { name: "shop__invoice", arguments: {} })).error.code).toBe(-32602);
  });

  test("lists everything to a caller that does not declare the draft, and has no groups for it", async () => {
    const { result } = await asOther("tools/list", {});
    expect(namesOf(result["tools"]).toSorted()).toEqual([
      "mail__read",
      "mail__send",
      "shop__refund",
      "shop__search",
    ]);
    expect((await asOther("groups/list", {})).error.code).toBe(-32601);
  });

  test("serves groups at the path of a profile by the names of the profile", async () => {
    await using renamed = await startTestGateway(
      config({
        drafts: ["groups"],
        servers: { mail: { group: "Reads and sends mail." } },
        profiles: {
          post: {
            allow: ["mail__*", "shop__refund"],
            rename: { mail__send: "post_letter", shop__refund: "pay_back" },
          },
        },
      }),
    );
    const atProfile = createTaskCaller(`${renamed.url}/post`, { capabilities: knowsGroups });
    expect(namesOf((await atProfile("groups/list", {})).result["groups"])).toEqual(["mail", "shop-billing"]);
    const contentsOf = async (name: string): Promise<readonly string[]> => {
      const { result } = await atProfile("groups/get", { name });
      return namesOf((result["contents"] as { readonly tools: unknown }).tools);
    };
    expect(await contentsOf("mail")).toEqual(["mail__read", "post_letter"]);
    expect(await contentsOf("shop-billing")).toEqual(["pay_back"]);
  });

  test("without the setting nobody is asked for groups, and no caller gets any", async () => {
    await using plain = await startTestGateway(config({ servers: { mail: { group: "Mail." } } }));
    const asks = createTaskCaller(plain.url, { capabilities: knowsGroups });
    expect((await asks("groups/list", {})).error.code).toBe(-32601);
    const names = namesOf((await asks("tools/list", {})).result["tools"]);
    expect(names.toSorted()).toEqual([
      "mail__read",
      "mail__send",
      "shop__invoice",
      "shop__refund",
      "shop__search",
    ]);
    const { result } = await asks("server/discover", {});
    expect(JSON.stringify(result["capabilities"])).not.toContain(id);
  });
});
