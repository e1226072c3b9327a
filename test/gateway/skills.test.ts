// Skills behind a gateway: their identities, what a policy leaves of them, and folders that are made from lists.
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { connect } from "../../packages/client/src/client/connect.ts";
import type { Provider } from "../../packages/core/src/provider/provider.ts";
import { createGateway } from "../../packages/junctor/src/gateway/gateway.ts";
import { listenHttp } from "../../packages/server/src/http/listen-http.ts";
import { createRegistry } from "../../packages/server/src/registry/registry.ts";
import { loadSkills } from "../../packages/server/src/skills/load-skills.ts";
import type { LoadedSkills } from "../../packages/server/src/skills/skill-folder.ts";
import { createServer } from "../../packages/server/src/wire/server.ts";
import { withoutMethods } from "../support/use-provider.ts";

let folder = "";
let loaded: LoadedSkills;
const manifest = "---\nname: refunds\ndescription: About refunds\n---\nSee examples/late.md\n";

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "junctor-gateway-skills-"));
  await write("refunds/SKILL.md", manifest);
  await write("refunds/examples/late.md", "Half.\n");
  loaded = await loadSkills(folder);
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function write(place: string, content: string): Promise<void> {
  await mkdir(dirname(join(folder, place)), { recursive: true });
  await writeFile(join(folder, place), content);
}

/** A server of the same skill, which can read folders or not. */
function createShop(readsFolders: boolean) {
  const without: Provider = {
    ...loaded,
    offers: (caller) => {
      const { serves } = withoutMethods(loaded, "resources/directory/read").offers(caller);
      return { serves, extensions: { "io.modelcontextprotocol/skills": {} } };
    },
  };
  return createRegistry({ skills: readsFolders ? loaded : without });
}

describe.each([
  ["modern", "2026-07-28"],
  ["modern", "2025-06-18"],
  ["legacy", "2026-07-28"],
  ["legacy", "2025-06-18"],
] as const)("skills of a %s server for a caller of %s", (serves, revision) => {
  test("carry their server, can be checked, and their folders can be read", async () => {
    const info = { name: "shop", version: "1" };
    await using one = await listenHttp(createServer(createShop(true), info, { serves }), {
      port: 0,
      graceMs: 100,
    });
    await using two = await listenHttp(createServer(createShop(false), info, { serves }), {
      port: 0,
      graceMs: 100,
    });
    const mcpServers = { one: { url: one.url }, two: { url: two.url } };
    await using gateway = await createGateway({ mcpServers });
    await gateway.ready;
    await using listener = await listenHttp(gateway.server, { port: 0, graceMs: 100 });
    await using client = await connect(listener.url, { revision });
    const uris = (await client.skills.listSkills()).map(({ uri }) => uri);
    expect(uris).toEqual(["skill://one/refunds/SKILL.md", "skill://two/refunds/SKILL.md"]);
    for (const server of ["one", "two"]) {
      const uri = `skill://${server}/refunds/SKILL.md`;
      const skill = await client.skills.load(uri);
      expect(skill).toMatchObject({ text: manifest, isVerified: true });
      expect(await skill.read("examples/late.md")).toBe("Half.\n");
      expect((await client.skills.getSkill(uri)).uri).toBe(uri);
      const children = await client.skills.readDirectory(`skill://${server}/refunds`);
      expect(children).toMatchObject([
        { uri, name: "refunds" },
        { uri: `skill://${server}/refunds/examples`, mimeType: "inode/directory" },
      ]);
      await expect(client.skills.readDirectory(uri)).rejects.toThrow("Directory not found");
      const root = await client.skills.readDirectory(`skill://${server}`);
      expect(root).toMatchObject([{ uri: `skill://${server}/refunds`, mimeType: "inode/directory" }]);
    }
    // Both servers have it under this URI.
    await expect(client.skills.getSkill("skill://refunds/SKILL.md")).rejects.toThrow("Skill not found");
    await expect(client.readResource("skill://refunds/SKILL.md")).rejects.toThrow("not found");
    await expect(client.skills.getSkill("skill://one/none/SKILL.md")).rejects.toThrow("Skill not found");
  });
});

test("the URI that the server has works while no other server has the same", async () => {
  await using gateway = await createGateway({ mcpServers: {} }, { local: { shop: createShop(true) } });
  await using client = await connect({ server: gateway.server });
  const { contents } = await client.readResource("skill://refunds/SKILL.md");
  expect(contents).toMatchObject([{ uri: "skill://shop/refunds/SKILL.md", text: manifest }]);
  expect((await client.skills.getSkill("skill://refunds/SKILL.md")).uri).toBe(
    "skill://shop/refunds/SKILL.md",
  );
});

test("a skill of which a caller may not read one file is left out, in the list and by its URI", async () => {
  const config = { mcpServers: {}, junctor: { deny: ["shop__skill://refunds/examples/*"] } };
  await using gateway = await createGateway(config, { local: { shop: createShop(true) } });
  await using client = await connect({ server: gateway.server });
  expect(await client.skills.listSkills()).toEqual([]);
  await expect(client.skills.getSkill("skill://shop/refunds/SKILL.md")).rejects.toThrow("Skill not found");
  await expect(client.readResource("skill://shop/refunds/examples/late.md")).rejects.toThrow("not found");
  for (const trick of ["skill://shop/refunds/examples/%6cate.md", "skill://shop/refunds/./examples/late.md"])
    await expect(client.readResource(trick)).rejects.toThrow("not found");
  await expect(client.skills.readDirectory("skill://shop/refunds/examples")).rejects.toThrow(
    "Directory not found",
  );
});

test("a change of a file is announced under the URI that callers know", async () => {
  await using gateway = await createGateway({ mcpServers: {} }, { local: { shop: createShop(true) } });
  await using client = await connect({ server: gateway.server });
  const uri = "skill://shop/refunds/SKILL.md";
  const updated: string[] = [];
  await client.watchResource(uri, (each) => updated.push(each));
  await write("refunds/SKILL.md", `${manifest}More.\n`);
  await loaded.reload();
  await expect.poll(() => updated).toEqual([uri]);
});

test("a server that is down has the skills that it listed last, and hides no others", async () => {
  const info = { name: "shop", version: "1" };
  const one = await listenHttp(createServer(createShop(true), info), { port: 0, graceMs: 100 });
  await using gateway = await createGateway(
    { mcpServers: { one: { url: one.url } } },
    { local: { shop: createShop(true) } },
  );
  await gateway.ready;
  await using client = await connect({ server: gateway.server });
  const list = async (): Promise<readonly string[]> =>
    (await client.skills.listSkills()).map(({ uri }) => uri);
  const both = ["skill://shop/refunds/SKILL.md", "skill://one/refunds/SKILL.md"];
  expect(await list()).toEqual(both);
  await one.close();
  expect(await list()).toEqual(both);
});

test("entries and folders of skills count for limits and have audit records, as files of skills do", async () => {
  const audit = join(folder, "audit.jsonl");
  const config = { mcpServers: {}, junctor: { audit, limits: { callsPerMinute: 3 } } };
  const uri = "skill://shop/refunds/SKILL.md";
  {
    await using gateway = await createGateway(config, { local: { shop: createShop(true) } });
    await using client = await connect({ server: gateway.server });
    expect((await client.skills.getSkill(uri)).frontmatter.name).toBe("refunds");
    expect(await client.skills.readDirectory("skill://shop/refunds")).toHaveLength(2);
    await client.readResource(uri);
    await expect(client.skills.getSkill(uri)).rejects.toThrow("No more than 3 calls a minute");
    await expect(client.skills.readDirectory("skill://shop/refunds")).rejects.toThrow("No more than");
  }
  const lines = (await readFile(audit, "utf8")).trimEnd().split("\n");
  const records = lines.map((line) => JSON.parse(line) as { readonly [key: string]: unknown });
  const ended = records.filter(({ tool }) => tool !== undefined);
  expect(ended.map(({ kind, server, tool, outcome }) => [kind, server, tool, outcome])).toEqual([
    ["resource", "shop", uri, "ok"],
    ["resource", "shop", "skill://shop/refunds", "ok"],
    ["resource", "shop", uri, "ok"],
    ["resource", "shop", uri, "refused"],
    ["resource", "shop", "skill://shop/refunds", "refused"],
  ]);
});

test("a server is not asked for a skill that the caller may not read", async () => {
  const asked: string[] = [];
  const skills: Provider = {
    ...loaded,
    call: (operation, context) => {
      if (operation.method === "skills/get") asked.push(operation.name);
      return loaded.call(operation, context);
    },
  };
  const config = { mcpServers: {}, junctor: { deny: ["secret__*"] } };
  await using gateway = await createGateway(config, { local: { secret: createRegistry({ skills }) } });
  await using client = await connect({ server: gateway.server });
  for (const uri of ["skill://secret/refunds/SKILL.md", "skill://refunds/SKILL.md", "skill://x/SKILL.md"])
    await expect(client.skills.getSkill(uri)).rejects.toThrow("Skill not found");
  expect(asked).toEqual([]);
});
