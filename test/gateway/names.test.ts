// Names that rules are about, and names that are kept for one server.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { createCallContext } from "../../packages/core/src/provider/context.ts";
import { createOperation } from "../../packages/core/src/provider/operation.ts";
import { createPromptRegistry } from "../../packages/server/src/registry/prompts.ts";
import { createRegistry } from "../../packages/server/src/registry/registry.ts";
import { createResourceRegistry } from "../../packages/server/src/registry/resources.ts";
import { callTool, listItems, listTools } from "../support/use-provider.ts";
import { startTestGateway, type TestGateway } from "./support/gateway.ts";
import { deadServer, type ServerEntry, statefulServer } from "./support/servers.ts";

const context = createCallContext();

async function toolsOf({ gateway }: TestGateway): Promise<readonly string[]> {
  return (await listTools(gateway.provider)).map(({ name }) => name);
}

function call({ gateway }: TestGateway, name: string): Promise<unknown> {
  return Promise.resolve(callTool(gateway.provider, name));
}

/** A child that lists these tools too. */
async function serverWith(...names: readonly string[]): Promise<ServerEntry> {
  const folder = await mkdtemp(join(tmpdir(), "junctor-names-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, "tools"), names.join("\n"));
  return statefulServer([`--tools=${join(folder, "tools")}`]);
}

test("a server without a prefix cannot take a name under the prefix of another, also while that is down or disabled", async () => {
  const bare = await serverWith("github__create", "mail__send", "docs__find", "mine");
  const mail = { command: "mail", env: { KEY: "${JUNCTOR_TEST_NO_SUCH_VARIABLE}" } };
  const config = {
    mcpServers: { bare, github: deadServer, mail },
    junctor: { servers: { bare: { prefix: false } } },
  };
  await using at = await startTestGateway(config, { env: {} });
  expect(await toolsOf(at)).toEqual(expect.arrayContaining(["mine", "docs__find", "echo"]));
  for (const name of ["github__create", "mail__send"]) {
    expect(await toolsOf(at)).not.toContain(name);
    await expect(call(at, name)).rejects.toThrow(/not found|not available|github/);
  }
  expect(at.gateway.collisions()).toEqual([
    { key: "github__create", owner: "github", others: ["bare"], isReserved: true },
    { key: "mail__send", owner: "mail", others: ["bare"], isReserved: true },
  ]);
  const warnings = at.log.filter(
    ({ level, text }) => level === "warn" && text.includes("begins with the prefix"),
  );
  expect(warnings.map(({ text }) => text)).toEqual([
    "github__create of bare begins with the prefix of github and is left out: rename it, or give its server a prefix",
    "mail__send of bare begins with the prefix of mail and is left out: rename it, or give its server a prefix",
  ]);
  // A prefix that an edit of the config brings or takes counts from then on.
  await at.gateway.update({
    mcpServers: { bare, docs: deadServer },
    junctor: { servers: { bare: { prefix: false } } },
  });
  const names = await toolsOf(at);
  expect(names).toEqual(expect.arrayContaining(["github__create", "mail__send"]));
  expect(names).not.toContain("docs__find");
});

test("the config may give a tool a name under the prefix of another server", async () => {
  const servers = { bare: { prefix: false, tools: { mine: { name: "github__mine" } } } };
  await using at = await startTestGateway({
    mcpServers: { bare: await serverWith("mine"), github: deadServer },
    junctor: { servers },
  });
  expect(await toolsOf(at)).toContain("github__mine");
  expect(at.gateway.collisions()).toEqual([]);
});

test.each([
  ["the name that callers see, of all servers", { deny: ["child__count"] }],
  ["its own name, of all servers", { deny: ["count"] }],
  ["its own name, of one server", { servers: { child: { deny: ["count"] } } }],
  ["the name that callers see, of one server", { servers: { child: { deny: ["child__count"] } } }],
  [
    "its own name, though it is renamed",
    { deny: ["count"], servers: { child: { tools: { count: { name: "n" } } } } },
  ],
  ["the name it is given", { servers: { child: { deny: ["n"], tools: { count: { name: "n" } } } } }],
])("a tool is denied by %s", async (_, junctor) => {
  await using at = await startTestGateway({ mcpServers: { child: statefulServer() }, junctor });
  const names = await toolsOf(at);
  expect(names).toContain("child__echo");
  for (const name of ["child__count", "count", "n"]) {
    expect(names).not.toContain(name);
    await expect(call(at, name)).rejects.toThrow("not found");
  }
});

test("a server allows by either name, all callers only by the name they see", async () => {
  const mcpServers = { child: statefulServer(), other: statefulServer() };
  const servers = { child: { allow: ["child__echo", "count"] } };
  await using at = await startTestGateway({ mcpServers, junctor: { servers, allow: ["child__*", "echo"] } });
  expect((await toolsOf(at)).toSorted()).toEqual(["child__count", "child__echo"]);
});

test("a resource that is denied is denied in every case, also where file names have none", async () => {
  const resources = createResourceRegistry();
  const files = new Map([
    ["etc/passwd", "root"],
    ["home/ada", "hello"],
  ]);
  // As on the file systems of Windows and macOS.
  resources.registerTemplate(
    "file:///{+path}",
    { name: "files" },
    ({ variables }) => files.get(String(variables["path"]).toLowerCase()) ?? "no such file",
  );
  const local = { disk: createRegistry({ resources }) };
  const read = async (at: TestGateway, uri: string): Promise<string> => {
    const outcome = await at.gateway.provider.call(createOperation("resources/read", uri), context);
    return outcome.kind === "complete" ? outcome.result.text : "";
  };
  for (const junctor of [
    { deny: ["file:///etc/*"] },
    { deny: ["disk__file:///Etc/*"] },
    { rules: [{ deny: ["file:///etc/*"] }] },
  ]) {
    await using at = await startTestGateway({ mcpServers: {}, junctor }, { local });
    for (const uri of [
      "file:///etc/passwd",
      "file:///ETC/passwd",
      "FILE:///Etc/Passwd",
      "file:///home/../%45TC/passwd",
    ])
      await expect(read(at, uri)).rejects.toThrow("not found");
    expect(await read(at, "file:///home/ADA")).toContain("hello");
  }
  await using narrow = await startTestGateway(
    { mcpServers: {}, junctor: { allow: ["disk__file:///*path*", "disk__file:///home/*"] } },
    { local },
  );
  expect(await read(narrow, "file:///home/ADA")).toContain("hello");
  await expect(read(narrow, "file:///HOME/ada")).rejects.toThrow("not found");
});

test("prompts and resources are denied by their own names as well", async () => {
  const [prompts, resources] = [createPromptRegistry(), createResourceRegistry()];
  for (const name of ["draft", "secret"]) {
    prompts.register(name, {}, () => name);
    resources.register(`note://${name}`, { name }, () => name);
  }
  const junctor = { deny: ["secret", "note://secret"], servers: { own: { prefix: "own" } } };
  await using at = await startTestGateway(
    { mcpServers: { own: { command: "unused" } }, junctor },
    { local: { own: createRegistry({ prompts, resources }) } },
  );
  const { provider } = at.gateway;
  const use = async (method: string, name: string): Promise<unknown> =>
    provider.call(createOperation(method, name), context);
  expect(await listItems(provider, "prompts")).toMatchObject([{ name: "own__draft" }]);
  expect(await listItems(provider, "resources")).toMatchObject([{ uri: "note://draft" }]);
  await expect(use("prompts/get", "own__secret")).rejects.toThrow("not found");
  await expect(use("resources/read", "note://secret")).rejects.toThrow("not found");
});
