import { connect } from "@junctor/client";
import { Listing } from "@junctor/core/provider";
import {
  compose,
  createPromptRegistry,
  createRegistry,
  createResourceRegistry,
  createServer,
  type Provider,
  withGroups,
  withMiddleware,
} from "@junctor/server";
import { expect, test } from "vitest";

function createShop() {
  const prompts = createPromptRegistry();
  const resources = createResourceRegistry();
  const registry = createRegistry({ prompts, resources });
  for (const name of ["search", "refund", "invoice", "ship"])
    registry.register(name, { description: `Does ${name}.` }, () => `${name} done`);
  prompts.register("apologise", {}, () => "Sorry!");
  resources.register("note://terms", { name: "terms" }, () => "No refunds after a year.");
  return registry;
}

const groups = [
  {
    name: "billing",
    title: "Billing",
    description: "Invoices and refunds.",
    instructions: "Find the invoice first.",
    contents: {
      tools: ["refund", "invoice"],
      prompts: ["apologise"],
      resources: ["note://terms"],
      groups: ["shipping"],
    },
  },
  { name: "shipping", description: "Parcels.", contents: { tools: ["ship", "refund"] } },
  { name: "manners", description: "How to write to customers.", instructions: "Be kind." },
];

interface Named {
  readonly name: string;
}

interface Lists {
  readonly tools: readonly Named[];
  readonly prompts: readonly Named[];
  readonly resources: readonly Named[];
  readonly groups: readonly Named[];
}

/** What is read of answers, each of which has only the members of its method. */
interface Answer extends Lists {
  readonly contents: Lists;
  readonly content: readonly object[];
}

const serve = (provider: Provider) => createServer(provider, { name: "shop", version: "1.0.0" });
const namesOf = (items: readonly Named[]): string[] => items.map(({ name }) => name);
/** A client whose requests show what is on the wire. */
async function open(provider: Provider, { groups = true } = {}) {
  const client = await connect({ server: serve(provider) }, { groups });
  const ask = async (method: string, params: object = {}): Promise<Answer> =>
    (await client.request(method, params)) as Answer;
  return { ask, [Symbol.asyncDispose]: () => client.close() };
}

test("a caller that declares groups finds things in them, and no longer in the lists", async () => {
  await using shop = await open(withGroups(createShop(), groups));
  expect(namesOf((await shop.ask("tools/list")).tools)).toEqual(["search"]);
  expect((await shop.ask("prompts/list")).prompts).toEqual([]);
  expect((await shop.ask("resources/list")).resources).toEqual([]);
  expect((await shop.ask("groups/list")).groups).toEqual([
    { name: "billing", title: "Billing", description: "Invoices and refunds." },
    { name: "manners", description: "How to write to customers." },
  ]);
  const billing = await shop.ask("groups/get", { name: "billing" });
  expect(billing).toMatchObject({
    instructions: "Find the invoice first.",
    contents: {
      tools: [{ name: "refund", inputSchema: { type: "object" } }, { name: "invoice" }],
      prompts: [{ name: "apologise" }],
      resources: [{ uri: "note://terms" }],
      groups: [{ name: "shipping", description: "Parcels." }],
    },
  });
  const shipping = await shop.ask("groups/get", { name: "shipping" });
  expect(shipping.contents.tools[1]).toEqual(billing.contents.tools[0]);
  expect(await shop.ask("groups/get", { name: "manners" })).toMatchObject({ instructions: "Be kind." });
  // Groups gate what is found, and not what is used.
  expect((await shop.ask("tools/call", { name: "refund", arguments: {} })).content).toMatchObject([
    { text: "refund done" },
  ]);
  await expect(shop.ask("groups/get", { name: "nothing" })).rejects.toMatchObject({ rpcCode: -32002 });
});

test("for any other caller groups do not exist", async () => {
  const provider = withGroups(createShop(), groups);
  await using shop = await open(provider, { groups: false });
  expect((await shop.ask("tools/list")).tools).toHaveLength(4);
  await expect(shop.ask("groups/list")).rejects.toMatchObject({ rpcCode: -32601 });
  await using declaring = await open(provider);
  expect(namesOf((await declaring.ask("tools/list")).tools)).toEqual(["search"]);
  expect((await shop.ask("tools/list")).tools).toHaveLength(4);
  await using legacy = await connect(
    { server: serve(withGroups(createShop(), groups)) },
    { revision: "2025-11-25" },
  );
  expect(await legacy.listTools()).toHaveLength(4);
  expect((await legacy.agreement()).capabilities.extensions).toBeUndefined();
});

test("what a caller may not see is in no group, and groups with nothing left are not there", async () => {
  const hiding = withMiddleware(createShop(), [
    {
      filterTools: (items) =>
        items.filter((item) => !("name" in item) || !["refund", "ship"].includes(item.name)),
    },
  ]);
  await using shop = await open(withGroups(hiding, groups));
  const { contents } = await shop.ask("groups/get", { name: "billing" });
  expect(namesOf(contents.tools)).toEqual(["invoice"]);
  expect(contents.groups).toBeUndefined();
  await expect(shop.ask("groups/get", { name: "shipping" })).rejects.toThrow("Group not found");
});

test("a client that declares groups lists what is in them, and callers see no difference", async () => {
  await using client = await connect({ server: serve(withGroups(createShop(), groups)) }, { groups: true });
  expect(namesOf(await client.listTools()).toSorted()).toEqual(["invoice", "refund", "search", "ship"]);
  expect(namesOf(await client.listPrompts())).toEqual(["apologise"]);
  expect(await client.listGroups()).toMatchObject([
    { name: "billing", contents: { tools: ["refund", "invoice"], groups: ["shipping"] } },
    { name: "manners", instructions: "Be kind." },
    { name: "shipping" },
  ]);
});

test("groups of several servers are merged under the names of their servers", async () => {
  await using shop = await connect({ server: serve(withGroups(createShop(), groups)) }, { groups: true });
  const other = withGroups(createShop(), groups.slice(2));
  await using both = await open(withGroups(compose({ "web-shop": shop, other })));
  expect(namesOf((await both.ask("groups/list")).groups)).toEqual(["web-shop-billing", "web-shop-manners"]);
  const { contents } = await both.ask("groups/get", { name: "web-shop-billing" });
  expect(namesOf(contents.tools)).toEqual(["web-shop__refund", "web-shop__invoice"]);
  expect(namesOf(contents.groups)).toEqual(["web-shop-shipping"]);
  expect(namesOf((await both.ask("tools/list")).tools)).toContain("other__refund");
});

test("a server that lists circles or nonsense harms nobody", async () => {
  const circle: Provider = {
    ...createShop(),
    list: (part, context) =>
      part === "groups"
        ? (new Listing([
            { name: "a", description: "a", contents: { groups: ["b"], tools: ["refund"] } },
            { name: "b", description: "b", contents: { groups: ["a", "b"] } },
            { name: "c", description: "c", contents: { groups: ["c", "none"], tools: ["ship", "none"] } },
          ]) as never)
        : createShop().list(part, context),
  };
  await using shop = await open(withGroups(circle));
  expect((await shop.ask("groups/list")).groups).toEqual([]);
  expect(namesOf((await shop.ask("tools/list")).tools)).toHaveLength(4);
});

test.each([
  [[{ name: "Big Group", description: "", instructions: "" }], "needs a name of 1 to 64 lower-case letters"],
  [[{ name: "a--b", description: "", instructions: "" }], "needs a name"],
  [[{ name: "a", description: "" }], "needs instructions or contents"],
  [[groups[2], groups[2]], "is there twice"],
  [[{ name: "a", description: "", contents: { tool: [] } }], "contents has no tool; it may have tools"],
  [[{ name: "a", description: "", contents: { groups: ["b"] } }], 'contains "b", which is not a group'],
  [
    [
      { name: "a", description: "", contents: { groups: ["b"] } },
      { name: "b", description: "", contents: { groups: ["a"] } },
    ],
    "groups contain each other: a → b → a",
  ],
])("groups that contradict each other are refused: %j", (wrong, text) => {
  expect(() => withGroups(createShop(), wrong as never)).toThrow(text);
});
