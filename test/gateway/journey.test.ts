// Servers people run, of both eras and over both transports, behind one gateway, and every client at once before it.
import { mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { standsStill } from "../support/stands-still.ts";
import { type GatewayClient, dialects, textOf } from "./support/clients.ts";
import { startTestGateway, type TestGateway } from "./support/gateway.ts";
import { npmServer, type SdkServer, startSdkServer, statefulServer } from "./support/servers.ts";

let folder: string;
let v1: SdkServer;
let v2: SdkServer;
let at: TestGateway;
let clients: ReadonlyMap<string, GatewayClient>;

beforeAll(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), "junctor-journey-")));
  await writeFile(join(folder, "note.txt"), "buy milk");
  [v1, v2] = await Promise.all([startSdkServer("v1"), startSdkServer("v2")]);
  at = await startTestGateway({
    mcpServers: {
      everything: npmServer("everything"),
      files: npmServer("filesystem", [folder]),
      memory: npmServer("memory", [], { MEMORY_FILE_PATH: join(folder, "memory.jsonl") }),
      v2: v2.entry,
      v1: v1.entry,
      child: statefulServer(),
    },
  });
  const connected = await Promise.all(
    dialects.map(async ({ name, connect }) => [name, await connect(at.url)] as const),
  );
  clients = new Map(connected);
});

afterAll(async () => {
  await Promise.all(Array.from(clients?.values() ?? [], (client) => client[Symbol.asyncDispose]()));
  await at?.[Symbol.asyncDispose]();
  await Promise.all([v1?.[Symbol.asyncDispose](), v2?.[Symbol.asyncDispose]()]);
  await rm(folder, { recursive: true });
});

const serverOf = (name: "v1" | "v2"): SdkServer => (name === "v1" ? v1 : v2);

test("every server is up, each in its era", () => {
  expect(at.gateway.status().map(({ name, status, era }) => [name, status, era])).toEqual([
    ["everything", "up", "legacy"],
    ["files", "up", "legacy"],
    ["memory", "up", "legacy"],
    ["v2", "up", "modern"],
    ["v1", "up", "legacy"],
    ["child", "up", "legacy"],
  ]);
  expect(at.gateway.collisions()).toEqual([]);
});

test("all clients are listed the same tools, under qualified names, in the same order each time", async () => {
  const lists = await Promise.all(
    [...clients.values(), ...clients.values()].map(async (client) =>
      (await client.listTools()).map(({ name }) => name),
    ),
  );
  for (const list of lists) expect(list).toEqual(lists[0]);
  const [names = []] = lists;
  const some = ["everything__echo", "files__read_text_file", "memory__search_nodes", "v2__echo", "v1__echo"];
  expect(names).toEqual(expect.arrayContaining(some));
  expect(names.every((name) => /^(everything|files|memory|v2|v1|child)__/.test(name))).toBe(true);
  const servers = [...new Set(names.map((name) => name.split("__")[0]))];
  expect(servers).toEqual(["everything", "files", "memory", "v2", "v1", "child"]);
});

describe.each(dialects)("$name", ({ name: dialect, isModern, connect }) => {
  let client: GatewayClient;
  beforeAll(() => void (client = clients.get(dialect)!));

  test("speaks its own era", () => {
    expect(client.revision).toBe(isModern ? "2026-07-28" : "2025-11-25");
  });

  test("calls every server", async () => {
    const call = async (name: string, args: object): Promise<string> => textOf(await client.call(name, args));
    expect(await call("everything__echo", { message: "hi" })).toBe("Echo: hi");
    expect(await call("files__read_text_file", { path: join(folder, "note.txt") })).toBe("buy milk");
    const entities = [{ name: dialect, entityType: "client", observations: ["was here"] }];
    await call("memory__create_entities", { entities });
    expect(await call("memory__search_nodes", { query: dialect })).toContain("was here");
    expect(await call("v1__echo", { message: "naïve 🦊" })).toBe("naïve 🦊");
    expect(await call("v2__echo", { message: "naïve 🦊" })).toBe("naïve 🦊");
    expect(await call("child__echo", { text: "naïve 🦊" })).toBe("naïve 🦊");
  });

  test("gets each answer to the call it belongs to, with many at once to all servers", async () => {
    const calls = Array.from({ length: 60 }, async (_, index) => {
      const server = ["v1", "v2", "everything"][index % 3];
      return textOf(await client.call(`${server}__echo`, { message: `m${index}.` }));
    });
    const texts = await Promise.all(calls);
    expect(texts.every((text, index) => text.includes(`m${index}.`))).toBe(true);
  });

  test("gets structured content and a tool's own error as they are", async () => {
    const weather = await client.call("everything__get-structured-content", { location: "Chicago" });
    expect(weather.structuredContent).toMatchObject({ temperature: expect.any(Number) as unknown });
    expect(await client.call("files__read_text_file", { path: "/etc/passwd" })).toMatchObject({
      isError: true,
    });
  });

  test("gets an error for any other spelling of a tool's name", async () => {
    for (const name of ["echo", "v1.echo", "V1__echo", "v1__echo ", "nobody__echo", "v1__v1__echo"])
      await expect(client.call(name, { message: "hi" })).rejects.toMatchObject({
        code: expect.anything() as unknown,
      });
  });

  test.each(["v1", "v2"])("sees progress of %s in order, before the result", async (server) => {
    const seen: unknown[] = [];
    const call = client.call(
      `${server}__count`,
      { to: 20 },
      { onprogress: ({ progress }) => seen.push(progress) },
    );
    seen.push(textOf(await call));
    expect(seen).toEqual([...Array.from({ length: 20 }, (_, index) => index + 1), "counted to 20"]);
  });

  test("sees progress of server-everything", async () => {
    const seen: unknown[] = [];
    const onprogress = ({ progress, total }: { progress: number; total?: number | undefined }): void =>
      void seen.push([progress, total]);
    await client.call(
      "everything__trigger-long-running-operation",
      { duration: 0.2, steps: 3 },
      { onprogress },
    );
    expect(seen).toEqual([1, 2, 3].map((step) => [step, 3]));
  });

  test("sees progress while the call is underway", async () => {
    const seen: unknown[] = [];
    const key = `progress of ${dialect}`;
    const call = client.call("child__hold", { key }, { onprogress: ({ message }) => seen.push(message) });
    await expect.poll(() => seen).toEqual(["held"]);
    await client.call("child__release", { key });
    expect(textOf(await call)).toBe(`released ${key}`);
  });

  test.each(["v1", "v2"] as const)("cancels a call of %s, which stops", async (server) => {
    const key = `${dialect} of ${server}`;
    const controller = new AbortController();
    const call = client.call(`${server}__wait`, { key }, { signal: controller.signal });
    await expect.poll(() => serverOf(server).stateOf(key)).toBe("running");
    controller.abort();
    await expect(call).rejects.toThrow(/abort|given up/i);
    await expect.poll(() => serverOf(server).stateOf(key)).toBe("aborted");
  });

  test("cancels a call of a child, which is notified", async () => {
    const key = `cancelled by ${dialect}`;
    const controller = new AbortController();
    const call = client.call("child__hold", { key }, { signal: controller.signal });
    await expect.poll(() => at.stderrOf("child")).toContain(`held ${key}`);
    controller.abort();
    await expect(call).rejects.toThrow(/abort|given up/i);
    await expect.poll(() => at.stderrOf("child")).toContain(`cancelled ${key}`);
  });

  test("lists and reads resources, of templates too", async () => {
    const uris = (await client.listResources()).map(({ uri }) => uri);
    expect(uris).toEqual(expect.arrayContaining(["v1note://today", "v2note://today"]));
    const fromEverything = uris.find((uri) => uri.startsWith("demo://"));
    expect(await client.read(fromEverything!)).toMatchObject([{ uri: fromEverything }]);
    const templates = (await client.listTemplates()).map(({ uriTemplate }) => uriTemplate);
    expect(templates).toEqual(expect.arrayContaining(["v1note://by-day/{day}", "v2note://by-day/{day}"]));
    for (const server of ["v1", "v2"]) {
      expect(await client.read(`${server}note://today`)).toMatchObject([{ text: "buy milk" }]);
      expect(await client.read(`${server}note://by-day/friday`)).toMatchObject([
        { text: "the note of friday" },
      ]);
    }
    await expect(client.read("nobody://has/it")).rejects.toThrow(/not found|nobody:/i);
  });

  test("lists and gets prompts", async () => {
    const names = (await client.listPrompts()).map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(["everything__simple-prompt", "v1__greet", "v2__greet"]));
    for (const server of ["v1", "v2"]) {
      expect(await client.getPrompt(`${server}__greet`, { who: "Ada" })).toMatchObject([
        { role: "user", content: { type: "text", text: "Greet Ada" } },
      ]);
    }
    expect(await client.getPrompt("everything__simple-prompt", {})).toMatchObject([{ role: "user" }]);
    await expect(client.getPrompt("greet", { who: "Ada" })).rejects.toThrow(/greet/);
  });

  test("completes arguments of prompts and variables of templates", async () => {
    const department = { name: "department", value: "E" };
    const prompt = (name: string) => ({ type: "ref/prompt", name }) as const;
    expect(await client.complete(prompt("everything__completable-prompt"), department)).toEqual([
      "Engineering",
    ]);
    for (const server of ["v1", "v2"]) {
      expect(await client.complete(prompt(`${server}__greet`), { name: "who", value: "Al" })).toEqual([
        "Alan",
      ]);
      const ref = { type: "ref/resource", uri: `${server}note://by-day/{day}` } as const;
      expect(await client.complete(ref, { name: "day", value: "tu" })).toEqual(["tuesday"]);
    }
  });

  test.each(["v1", "v2"] as const)(
    "is told of changes of a resource of %s that it watches",
    async (server) => {
      const uri = `${server}note://today`;
      await using own = await connect(at.url);
      await using other = await connect(at.url);
      await other.watch();
      await own.watch(uri);
      const heard = async (): Promise<readonly string[]> => {
        serverOf(server).touch();
        return own.changes;
      };
      await expect.poll(heard, { interval: 50 }).toContain(uri);
      expect(other.changes).not.toContain(uri);
    },
  );

  test.each(["v1", "v2", "child"])(
    "hears the log of its own call of %s and nobody else's",
    async (server) => {
      await using own = await connect(at.url);
      await using other = await connect(at.url);
      await other.watch();
      const words = `said by ${server} to ${dialect}`;
      // The other has a call underway, and wants to hear.
      const key = `log of ${dialect} at ${server}`;
      const held = other.call("child__hold", { key }, { wantsLogs: true, onprogress: () => {} });
      await expect.poll(() => at.stderrOf("child")).toContain(`held ${key}`);
      await own.call(`${server}__chat`, { words }, { wantsLogs: true });
      if (server !== "child") await expect.poll(() => own.logs).toContain(words);
      await other.call("child__release", { key });
      await held;
      expect(other.logs).not.toContain(words);
    },
  );

  test("receives the log of a child that serves no other caller", async () => {
    // For some seconds after a call was given up, what is logged may be that call's and is nobody's.
    const chat = async (): Promise<readonly unknown[]> => {
      await client.call("child__chat", { words: `only for ${dialect}` }, { wantsLogs: true });
      return client.logs;
    };
    await expect.poll(chat, { interval: 500 }).toContain(`only for ${dialect}`);
    for (const [name, other] of clients)
      if (name !== dialect) expect(other.logs).not.toContain(`only for ${dialect}`);
  });
});

test.each(["v1", "v2", "child"] as const)(
  "a tool that %s gained is announced to every client, once, and listed by then",
  async (server) => {
    const fresh = await Promise.all(dialects.map(({ connect }) => connect(at.url)));
    try {
      await Promise.all(fresh.map((client) => client.watch()));
      await Promise.all(fresh.map((client) => client.listTools()));
      // A legacy client opens its stream when it likes.
      const grow = (name: string): unknown =>
        server === "child" ? fresh[0]!.call("child__grow", { name }) : serverOf(server).grow(name);
      await grow(`sprout-of-${server}`);
      const listed = `${server}__sprout-of-${server}`;
      await Promise.all(
        fresh.map(async (client) => {
          await expect.poll(() => client.changes).toContain("tools");
          const names = (await client.listTools()).map(({ name }) => name);
          expect(names).toContain(listed);
          expect(textOf(await client.call(listed))).toMatch(/grown|this is/);
        }),
      );
      // Many changes at once are few announcements.
      const before = fresh.map((client) => client.changes.length);
      await Promise.all(Array.from({ length: 10 }, (_, index) => grow(`leaf-${index}-of-${server}`)));
      await Promise.all(
        fresh.map(async (client, index) => {
          const last = async (): Promise<readonly string[]> =>
            (await client.listTools()).map(({ name }) => name);
          await expect.poll(last).toContain(`${server}__leaf-9-of-${server}`);
          await expect.poll(() => client.changes.length).toBeGreaterThan(before[index]!);
          expect(client.changes.length - before[index]!).toBeLessThanOrEqual(5);
        }),
      );
    } finally {
      await Promise.all(fresh.map((client) => client[Symbol.asyncDispose]()));
    }
  },
);

describe("a client with a user", () => {
  test.each(["v1", "child"] as const)("finds what %s gained in the list when it is told", async (server) => {
    await using client = await dialects[0]!.connect(at.url, { hasUser: true });
    const names = async (): Promise<readonly string[]> => (await client.listTools()).map(({ name }) => name);
    const grow = (name: string): unknown =>
      server === "v1" ? v1.grow(name) : client.call("child__grow", { name });
    await names();
    await grow(`bud-of-${server}`);
    await expect.poll(names).toContain(`${server}__bud-of-${server}`);
    await standsStill(() => client.changes.length);
    const before = client.changes.length;
    await grow(`bloom-of-${server}`);
    await expect.poll(() => client.changes.length).toBeGreaterThan(before);
    expect(await names()).toContain(`${server}__bloom-of-${server}`);
  });

  test.each(dialects)("$name sees progress, and cancels", async ({ name: dialect, connect }) => {
    await using client = await connect(at.url, { hasUser: true });
    const seen: unknown[] = [];
    await client.call("v1__count", { to: 5 }, { onprogress: ({ progress }) => seen.push(progress) });
    expect(seen).toEqual([1, 2, 3, 4, 5]);
    const key = `cancelled by the user of ${dialect}`;
    const controller = new AbortController();
    const call = client.call("child__hold", { key }, { signal: controller.signal });
    await expect.poll(() => at.stderrOf("child")).toContain(`held ${key}`);
    controller.abort();
    await expect(call).rejects.toThrow(/abort|given up/i);
    await expect.poll(() => at.stderrOf("child")).toContain(`cancelled ${key}`);
  });

  test.each(dialects)(
    "the user of $name is asked; a caller without a user is refused",
    async ({ connect }) => {
      await using client = await connect(at.url, { hasUser: true });
      const names = (await client.listTools()).map(({ name }) => name);
      expect(names).toContain("everything__trigger-elicitation-request");
      expect(textOf(await client.call("everything__trigger-elicitation-request"))).toContain("Ada");
      // One process is for all callers, also those that cannot be asked: the question is refused for them.
      await using other = await connect(at.url);
      const asked = other.call("everything__trigger-elicitation-request").then(textOf, String);
      // In the modern era the caller is told so; in the legacy one the server is, which says it in its own words.
      await expect(asked).resolves.toMatch(
        /needs the client capabilities: elicitation|does not offer|error/i,
      );
    },
  );
});

test("nothing was logged as an error", () => {
  expect(at.log.filter(({ level }) => level === "error")).toEqual([]);
});
