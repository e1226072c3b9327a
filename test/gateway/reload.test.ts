// Another config while the gateway runs: what did not change is not touched.
import { createHash } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ConfigError } from "../../packages/core/src/errors/index.ts";
import { isAlive } from "../support/processes.ts";
import { connectTo, dialects, type GatewayClient, textOf } from "./support/clients.ts";
import { startTestGateway } from "./support/gateway.ts";
import { npmServer, startSdkServer, statefulServer } from "./support/servers.ts";

let folder: string;
beforeEach(async () => void (folder = await mkdtemp(join(tmpdir(), "junctor-reload-"))));
afterEach(() => rm(folder, { recursive: true }));

const namesOf = async (client: GatewayClient): Promise<readonly string[]> =>
  (await client.listTools()).map(({ name }) => name);
const one = statefulServer([], { WHO: "one" });
const two = statefulServer([], { WHO: "two" });
const three = statefulServer([], { WHO: "three" });
const keyOf = (name: string): string => `${name}-0123456789-abcdefgh`;
const sha256 = (name: string): string => createHash("sha256").update(keyOf(name)).digest("hex");

describe("a server", () => {
  test("that is added is there for every client, and the others are as they were", async () => {
    await using at = await startTestGateway({ mcpServers: { one, two } });
    const clients = await Promise.all(dialects.map(({ connect }) => connect(at.url)));
    await Promise.all(clients.map((client) => client.watch()));
    await Promise.all(clients.map((client) => client.listTools()));
    await at.gateway.update({ mcpServers: { one, three, two } });
    for (const client of clients) {
      await expect.poll(() => client.changes).toContain("tools");
      const names = await namesOf(client);
      expect([...new Set(names.map((name) => name.split("__")[0]))]).toEqual(["one", "three", "two"]);
      expect(textOf(await client.call("three__echo", { text: "hi" }))).toBe("hi");
    }
    expect([at.pidsOf("one").length, at.pidsOf("two").length, at.pidsOf("three").length]).toEqual([1, 1, 1]);
    await Promise.all(clients.map((client) => client[Symbol.asyncDispose]()));
  });

  test("that is removed is gone, with its process, and the others are as they were", async () => {
    await using at = await startTestGateway({ mcpServers: { one, two } });
    await using client = await connectTo(at.url);
    const [pid] = at.pidsOf("one");
    await at.gateway.update({ mcpServers: { two } });
    expect(isAlive(pid!)).toBe(false);
    expect((await namesOf(client)).every((name) => name.startsWith("two__"))).toBe(true);
    await expect(client.call("one__echo", { text: "hi" })).rejects.toThrow(/Unknown tool/);
    expect(textOf(await client.call("two__echo", { text: "hi" }))).toBe("hi");
    expect(at.gateway.status().map(({ name }) => name)).toEqual(["two"]);
    expect(at.pidsOf("two")).toHaveLength(1);
  });

  test("that is changed is another, and its calls underway finish", async () => {
    await using at = await startTestGateway({ mcpServers: { one, two } });
    await using client = await connectTo(at.url);
    const held = client.call("one__hold", { key: "k" });
    const other = client.call("two__hold", { key: "k" });
    held.catch(() => {});
    other.catch(() => {});
    for (const server of ["one", "two"]) await expect.poll(() => at.stderrOf(server)).toContain("held k");
    const file = join(folder, "tools");
    await writeFile(file, "sprout\n");
    const [old] = at.pidsOf("one");
    const updated = at.gateway.update({ mcpServers: { one: statefulServer([`--tools=${file}`]), two } });
    await expect.poll(() => at.pidsOf("one").length).toBe(2);
    await expect.poll(() => namesOf(client)).toContain("one__sprout");
    expect(textOf(await client.call("one__sprout"))).toBe("this is sprout");
    expect(isAlive(old!)).toBe(true);
    // Calls go to the new process; the old one is told otherwise.
    process.kill(old!, "SIGUSR2");
    expect(textOf(await held)).toBe("released k");
    await updated;
    expect(isAlive(old!)).toBe(false);
    await client.call("two__release", { key: "k" });
    expect(textOf(await other)).toBe("released k");
    expect(at.pidsOf("two")).toHaveLength(1);
  });

  test("that is changed is not missed while it starts", async () => {
    await using at = await startTestGateway({ mcpServers: { one, two } });
    await using client = await dialects[0]!.connect(at.url);
    const before = await namesOf(client);
    const updated = at.gateway.update({ mcpServers: { one: three, two } });
    const outcomes = new Set<string>();
    for (let round = 0; round < 3; round++) {
      expect(await namesOf(client)).toEqual(before);
      outcomes.add(await client.call("one__echo", { text: "hi" }).then(textOf, String));
    }
    await updated;
    expect([...outcomes]).toEqual(["hi"]);
  });

  test("that did not change is not touched, however often the config is read", async () => {
    await using at = await startTestGateway({
      mcpServers: { one, two },
      junctor: { servers: { one: { prefix: "o" } } },
    });
    const config = { junctor: { servers: { one: { prefix: "o" } } }, mcpServers: { one: { ...one }, two } };
    for (let round = 0; round < 3; round++) await at.gateway.update(config);
    expect([at.pidsOf("one").length, at.pidsOf("two").length]).toEqual([1, 1]);
  });

  test("whose tools are renamed has the new names only", async () => {
    await using at = await startTestGateway({ mcpServers: { one, two } });
    await using client = await connectTo(at.url);
    await at.gateway.update({
      mcpServers: { one, two },
      junctor: { servers: { one: { prefix: "uno", tools: { echo: { name: "say" } } } } },
    });
    const names = await namesOf(client);
    expect(names).toEqual(expect.arrayContaining(["uno__count", "say", "two__echo"]));
    expect(names.some((name) => name.startsWith("one__"))).toBe(false);
    expect(textOf(await client.call("say", { text: "hi" }))).toBe("hi");
    await expect(client.call("one__echo", { text: "hi" })).rejects.toThrow(/Unknown tool/);
  });

  test("whose resource is watched is watched still after it changed", async () => {
    await using http = await startSdkServer("v1");
    const config = (timeoutMs: number): object => ({
      mcpServers: { http: http.entry },
      junctor: { servers: { http: { timeoutMs } } },
    });
    await using at = await startTestGateway(config(50_000));
    await using client = await dialects[0]!.connect(at.url);
    await client.watch("v1note://today");
    await expect.poll(() => http.told.filter(({ subscribed }) => subscribed !== undefined).length).toBe(1);
    await at.gateway.update(config(60_000));
    const heard = async (): Promise<readonly string[]> => {
      http.touch();
      return client.changes;
    };
    await expect.poll(heard, { interval: 50 }).toContain("v1note://today");
  });
});

describe("an update", () => {
  test("that is wrong is refused with every mistake, and nothing changes", async () => {
    await using at = await startTestGateway({ mcpServers: { one, two } });
    await using client = await connectTo(at.url);
    const before = await namesOf(client);
    const wrong = {
      mcpServers: { one: { comand: "x" }, two: { command: "x", url: "http://127.0.0.1:1/mcp" } },
      junctor: { separator: "%", servers: { nobody: {} }, deniy: [] },
    };
    const error = await at.gateway.update(wrong).then(
      () => undefined,
      (reason: unknown) => reason,
    );
    expect(error).toBeInstanceOf(ConfigError);
    const paths = (error as ConfigError).issues.map(({ path }) => path).join("\n");
    for (const part of ["one", "two", "separator", "nobody", "deniy"]) expect(paths).toContain(part);
    expect(await namesOf(client)).toEqual(before);
    expect(textOf(await client.call("one__echo", { text: "hi" }))).toBe("hi");
    expect([at.pidsOf("one").length, at.pidsOf("two").length]).toEqual([1, 1]);
    expect(client.changes).toEqual([]);
  });

  test("whose middleware cannot be loaded is refused, and nothing changes", async () => {
    await using at = await startTestGateway({ mcpServers: { one } }, { folder });
    await using client = await connectTo(at.url);
    const updated = at.gateway.update({ mcpServers: { two }, junctor: { middleware: ["./none.mjs"] } });
    await expect(updated).rejects.toMatchObject({ name: "ConfigError" });
    expect(textOf(await client.call("one__echo", { text: "hi" }))).toBe("hi");
    expect(at.pidsOf("two")).toEqual([]);
  });

  test("whose audit file cannot be opened is refused, and nothing changes", async () => {
    await using at = await startTestGateway({ mcpServers: { one } }, { folder });
    await using client = await connectTo(at.url);
    const updated = at.gateway.update({
      mcpServers: { two },
      junctor: { audit: "no/such/folder/audit.jsonl" },
    });
    await expect(updated).rejects.toThrow(/audit/);
    expect(textOf(await client.call("one__echo", { text: "hi" }))).toBe("hi");
    expect(at.pidsOf("two")).toEqual([]);
  });

  test("changes what is done around every call", async () => {
    const say = (word: string): string =>
      `export default { beforeCall: () => { throw Object.assign(new Error("${word}"), { name: "ToolError" }); } };`;
    await writeFile(join(folder, "refuse.mjs"), say("no"));
    await using at = await startTestGateway({ mcpServers: { one } }, { folder });
    await using client = await connectTo(at.url);
    const echo = (): Promise<string> => client.call("one__echo", { text: "hi" }).then(textOf, () => "failed");
    expect(await echo()).toBe("hi");
    await at.gateway.update({ mcpServers: { one }, junctor: { middleware: ["./refuse.mjs"] } });
    expect(await echo()).not.toBe("hi");
    await at.gateway.update({ mcpServers: { one }, junctor: { deny: ["*__count"] } });
    expect(await echo()).toBe("hi");
    expect(await namesOf(client)).not.toContain("one__count");
    expect(at.pidsOf("one")).toHaveLength(1);
  });

  test("keeps what callers have used up of a limit, also when its number changes", async () => {
    const config = (deny: readonly string[], callsPerMinute = 2): object => ({
      mcpServers: { one },
      junctor: { limits: { callsPerMinute }, deny },
    });
    await using at = await startTestGateway(config([]));
    await using client = await connectTo(at.url);
    const echo = async (): Promise<string> => textOf(await client.call("one__echo", { text: "hi" }));
    expect([await echo(), await echo()]).toEqual(["hi", "hi"]);
    await at.gateway.update(config(["*__count"]));
    expect(await echo()).toContain("No more than 2 calls a minute");
    for (const number of [1, 2, 3]) {
      await at.gateway.update(config([], number));
      expect(await echo()).toContain(`No more than ${number} call`);
    }
  });

  test("takes another separator, or says that it does not", async () => {
    await using at = await startTestGateway({ mcpServers: { one } });
    await using client = await connectTo(at.url);
    const refused = await at.gateway.update({ mcpServers: { one }, junctor: { separator: "." } }).then(
      () => false,
      () => true,
    );
    expect(await namesOf(client)).toContain(refused ? "one__echo" : "one.echo");
  });

  test("takes keys away: callers with such a key get in no more", async () => {
    const config = (...names: readonly string[]): object => ({
      mcpServers: { one },
      junctor: { keys: Object.fromEntries(names.map((name) => [name, { sha256: sha256(name) }])) },
    });
    await using at = await startTestGateway(config("alice", "bob"));
    await using hers = await dialects[0]!.connect(at.url, { key: keyOf("alice") });
    const his = await dialects[0]!.connect(at.url, { key: keyOf("bob") });
    await at.gateway.update(config("alice", "carol"));
    expect(textOf(await hers.call("one__echo", { text: "hi" }))).toBe("hi");
    await expect(his.call("one__echo", { text: "hi" })).rejects.toThrow(/401|key|Unknown tool/i);
    await expect(connectTo(at.url, { key: keyOf("bob") })).rejects.toThrow(/401/);
    await using carols = await connectTo(at.url, { key: keyOf("carol") });
    expect(textOf(await carols.call("one__echo", { text: "hi" }))).toBe("hi");
    // What ends his session is refused as well.
    await Promise.allSettled([his[Symbol.asyncDispose]()]);
  });

  test("that brings the first keys is refused, because the open listeners check none", async () => {
    await using at = await startTestGateway({ mcpServers: { one } });
    await using client = await connectTo(at.url);
    const update = at.gateway.update({
      mcpServers: { one },
      junctor: { keys: { alice: { sha256: sha256("alice") } } },
    });
    await expect(update).rejects.toThrow("junctor.keys, junctor.issuers: cannot be brought in");
    expect(textOf(await client.call("one__echo", { text: "hi" }))).toBe("hi");
  });

  test("that takes the last key away lets everybody in, or is refused", async () => {
    const keys = { alice: { sha256: sha256("alice") } };
    await using at = await startTestGateway({ mcpServers: { one }, junctor: { keys } });
    const isRefused = await at.gateway.update({ mcpServers: { one } }).then(
      () => false,
      () => true,
    );
    await using client = await connectTo(at.url, isRefused ? { key: keyOf("alice") } : {});
    expect(textOf(await client.call("one__echo", { text: "hi" }))).toBe("hi");
  });

  test("made while another is underway is the one that counts, and no process is left over", async () => {
    await using at = await startTestGateway({ mcpServers: { one } });
    await using client = await connectTo(at.url);
    await Promise.all([
      at.gateway.update({ mcpServers: { one, two } }),
      at.gateway.update({ mcpServers: { one, three } }),
      at.gateway.update({ mcpServers: { one: two, three } }),
    ]);
    expect([...new Set((await namesOf(client)).map((name) => name.split("__")[0]))]).toEqual([
      "one",
      "three",
    ]);
    expect(((await client.call("one__count")).structuredContent as { env: object }).env).toMatchObject({
      WHO: "two",
    });
    expect(at.pidsOf("two").filter(isAlive)).toEqual([]);
    expect(at.pidsOf("one").filter(isAlive)).toHaveLength(1);
    expect(at.pidsOf("three").filter(isAlive)).toHaveLength(1);
  });

  test("after the gateway was closed starts nothing", async () => {
    await using at = await startTestGateway({ mcpServers: { one } });
    await at.gateway.close();
    await expect(at.gateway.update({ mcpServers: { one, two } })).rejects.toThrow(/closed/);
    expect(at.pidsOf("two").filter(isAlive)).toEqual([]);
  });

  test("that is underway when the gateway is closed leaves no process", async () => {
    await using at = await startTestGateway({ mcpServers: { one } });
    await using client = await connectTo(at.url);
    const held = client.call("one__hold", { key: "k" });
    held.catch(() => {});
    await expect.poll(() => at.stderrOf("one")).toContain("held k");
    const updated = at.gateway.update({ mcpServers: { two } });
    await expect.poll(() => at.pidsOf("two").length).toBe(1);
    await at.gateway.close();
    expect([...at.pidsOf("one"), ...at.pidsOf("two")].filter(isAlive)).toEqual([]);
    await expect(held).rejects.toThrow(/one/);
    await updated;
  });
});

test("a server from npm is changed while the others go on", async () => {
  const other = await mkdtemp(join(tmpdir(), "junctor-other-"));
  await writeFile(join(other, "note.txt"), "buy bread");
  await using at = await startTestGateway({ mcpServers: { files: npmServer("filesystem", [folder]), one } });
  await using client = await connectTo(at.url);
  const path = join(other, "note.txt");
  expect(await client.call("files__read_text_file", { path })).toMatchObject({ isError: true });
  await at.gateway.update({ mcpServers: { files: npmServer("filesystem", [other]), one } });
  expect(textOf(await client.call("files__read_text_file", { path }))).toBe("buy bread");
  expect(at.pidsOf("one")).toHaveLength(1);
  await rm(other, { recursive: true });
});
