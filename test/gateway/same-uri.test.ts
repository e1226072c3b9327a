// The same URI at two servers: each caller has that of the first server it may use, and hears of no other.
import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { createRegistry } from "../../packages/server/src/registry/registry.ts";
import {
  createResourceRegistry,
  type ResourceRegistry,
} from "../../packages/server/src/registry/resources.ts";
import { dialects, type GatewayClient } from "./support/clients.ts";
import { startTestGateway } from "./support/gateway.ts";

const uri = "doc://handbook";
const keyOf = (name: string): string => `${name}-0123456789-abcdefgh`;
const key = (name: string, allow: string): object => ({
  sha256: createHash("sha256").update(keyOf(name)).digest("hex"),
  allow: [allow],
});

function createHandbook(text: string): ResourceRegistry {
  const resources = createResourceRegistry();
  resources.register(uri, { name: text }, () => text);
  return resources;
}

test.each(dialects)("$name", async ({ connect }) => {
  const handbooks = { first: createHandbook("of the first"), second: createHandbook("of the second") };
  const keys = { all: key("all", "*"), one: key("one", "first__*"), two: key("two", "second__*") };
  await using at = await startTestGateway(
    { mcpServers: {}, junctor: { keys } },
    {
      local: {
        first: createRegistry({ resources: handbooks.first }),
        second: createRegistry({ resources: handbooks.second }),
      },
    },
  );
  const clients: GatewayClient[] = [];
  for (const [name, text] of [
    ["all", "of the first"],
    ["one", "of the first"],
    ["two", "of the second"],
  ] as const) {
    const client = await connect(at.url, { key: keyOf(name) });
    clients.push(client);
    expect(await client.listResources()).toMatchObject([{ uri, name: text }]);
    expect(await client.read(uri)).toMatchObject([{ text }]);
    await client.watch(uri);
  }
  const heard = (): readonly number[] =>
    clients.map(({ changes }) => changes.filter((change) => change === uri).length);
  handbooks.second.updated(uri);
  await expect.poll(heard).toEqual([0, 0, 1]);
  handbooks.first.updated(uri);
  await expect.poll(heard).toEqual([1, 1, 1]);
  await Promise.all(clients.map((client) => client[Symbol.asyncDispose]()));
});
