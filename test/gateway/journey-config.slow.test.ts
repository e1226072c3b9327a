// What the config says is what callers see, whichever client they have.
import { createHash } from "node:crypto";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { readAuditCalls } from "../support/audit-lines.ts";
import { connectTo, dialects, type GatewayClient, textOf } from "./support/clients.ts";
import { startTestGateway } from "./support/gateway.ts";
import { startSdkServer, statefulServer } from "./support/servers.ts";

let folder: string;
beforeEach(async () => void (folder = await mkdtemp(join(tmpdir(), "junctor-config-"))));
afterEach(() => rm(folder, { recursive: true }));

const namesOf = async (client: GatewayClient): Promise<readonly string[]> =>
  (await client.listTools()).map(({ name }) => name);

interface Counted {
  readonly calls: number;
  readonly pid: number;
  readonly env: { readonly [name: string]: string };
}
const count = async (client: GatewayClient, name = "child__count"): Promise<Counted> =>
  (await client.call(name)).structuredContent as Counted;

describe("names", () => {
  test("have the prefix the config gives, or none, and each leads to its server", async () => {
    await using at = await startTestGateway({
      mcpServers: { "my server": statefulServer(), short: statefulServer(), bare: statefulServer() },
      junctor: { servers: { short: { prefix: "s" }, bare: { prefix: false } } },
    });
    await using client = await connectTo(at.url);
    const names = await namesOf(client);
    expect(names).toEqual(expect.arrayContaining(["my-server__count", "s__count", "count"]));
    expect(names).not.toContain("short__count");
    const pids = await Promise.all(
      ["my-server__count", "s__count", "count"].map(async (name) => (await count(client, name)).pid),
    );
    expect(pids).toEqual(["my server", "short", "bare"].map((server) => at.pidsOf(server)[0]));
  });

  test("are joined as the config says", async () => {
    await using at = await startTestGateway({
      mcpServers: { a: statefulServer() },
      junctor: { separator: "." },
    });
    await using client = await connectTo(at.url);
    expect(await namesOf(client)).toContain("a.echo");
    expect(textOf(await client.call("a.echo", { text: "hi" }))).toBe("hi");
    await expect(client.call("a__echo", { text: "hi" })).rejects.toThrow(/Unknown tool/);
  });

  test("that another client's file leaves out are not there and cannot be called", async () => {
    const only = { includeTools: ["echo", "count"], excludeTools: ["count"] };
    await using at = await startTestGateway({
      mcpServers: {
        windsurf: { ...statefulServer(), disabledTools: ["count", "ec*"] },
        gemini: { ...statefulServer(), ...only },
      },
    });
    await using client = await connectTo(at.url);
    const names = await namesOf(client);
    expect(names.filter((name) => name.startsWith("gemini__"))).toEqual(["gemini__echo"]);
    expect(names).toContain("windsurf__echo");
    expect(names).not.toContain("windsurf__count");
    await expect(client.call("windsurf__count")).rejects.toThrow(/Unknown tool/);
    await expect(client.call("gemini__count")).rejects.toThrow(/Unknown tool/);
    await at.gateway.update({ mcpServers: { windsurf: statefulServer(), gemini: statefulServer() } });
    expect(await namesOf(client)).toEqual(expect.arrayContaining(["windsurf__count", "gemini__count"]));
    expect(at.pidsOf("windsurf")).toHaveLength(1);
  });

  test("are changed, described and hidden tool by tool, and what is hidden cannot be called", async () => {
    await using at = await startTestGateway({
      mcpServers: { child: statefulServer() },
      junctor: {
        servers: {
          child: {
            deny: ["d*", "gr?w"],
            tools: { echo: { name: "say", description: "Says it." }, chat: { hide: true } },
          },
        },
      },
    });
    for (const { connect } of dialects) {
      await using client = await connect(at.url);
      const tools = await client.listTools();
      expect(tools.map(({ name }) => name)).toEqual(["child__count", "say", "child__hold", "child__release"]);
      expect(tools[1]).toMatchObject({ description: "Says it.", inputSchema: { type: "object" } });
      expect(textOf(await client.call("say", { text: "hi" }))).toBe("hi");
      for (const hidden of [
        "child__echo",
        "echo",
        "child__chat",
        "chat",
        "child__die",
        "child__grow",
        "CHILD__COUNT",
      ])
        await expect(client.call(hidden, { text: "hi" })).rejects.toThrow(/Unknown tool/);
    }
    expect(at.pidsOf("child")).toHaveLength(1);
  });

  test("that are allowed are the only ones", async () => {
    await using at = await startTestGateway({
      mcpServers: { one: statefulServer(), two: statefulServer() },
      junctor: { deny: ["*__echo"], servers: { one: { allow: ["c*", "echo"] } } },
    });
    await using client = await connectTo(at.url);
    const names = await namesOf(client);
    expect(names.filter((name) => name.startsWith("one__"))).toEqual(["one__count", "one__chat"]);
    expect(names).not.toContain("two__echo");
    await expect(client.call("two__echo", { text: "hi" })).rejects.toThrow(/Unknown tool/);
  });

  test("that several servers claim are reported, and the first in the config has them", async () => {
    await using at = await startTestGateway({
      mcpServers: { one: statefulServer(), two: statefulServer() },
      junctor: {
        servers: { one: { prefix: false }, two: { prefix: false, tools: { echo: { name: "say" } } } },
      },
    });
    const collisions = at.gateway.collisions();
    expect(collisions).toContainEqual({ key: "count", owner: "one", others: ["two"] });
    expect(collisions.map(({ key }) => key)).not.toContain("echo");
    expect(at.log).toContainEqual(
      expect.objectContaining({ level: "warn", facts: { name: "count", owner: "one", others: ["two"] } }),
    );
    await using client = await connectTo(at.url);
    expect((await namesOf(client)).filter((name) => name === "count")).toHaveLength(1);
    expect((await count(client, "count")).pid).toBe(at.pidsOf("one")[0]);
    expect(textOf(await client.call("say", { text: "hi" }))).toBe("hi");
  });
});

test("a name means the same server to every kind of client, also when the first claimant came up late", async () => {
  const dead = join(folder, "dead");
  await writeFile(dead, "");
  await using at = await startTestGateway({
    mcpServers: { late: statefulServer([`--dead-if=${dead}`]), early: statefulServer() },
    junctor: { servers: { late: { prefix: false }, early: { prefix: false } } },
  });
  await using before = await dialects[0]!.connect(at.url);
  expect((await count(before, "count")).pid).toBe(at.pidsOf("early")[0]);
  await rm(dead);
  await expect.poll(() => at.gateway.status()[0]?.status).toBe("up");
  await expect.poll(() => at.gateway.collisions().map(({ key }) => key)).toContain("count");
  expect((await count(before, "count")).pid).toBe(at.pidsOf("early")[0]);
  await using after = await dialects[0]!.connect(at.url, { hasUser: true });
  await namesOf(after);
  expect(at.pidsOf("late")).not.toContain((await count(after, "count")).pid);
});

describe("keys", () => {
  const alice = "alice-0123456789-abcdefgh";
  const bob = "bob-0123456789-abcdefghij";
  const hash = (key: string): string => createHash("sha256").update(key).digest("hex");
  const keys = {
    alice: { env: "ALICE_KEY", allow: ["child__*"], deny: ["child__die"] },
    bob: { sha256: hash(bob), allow: ["http__*", "child__echo"] },
  };

  test.each(dialects)(
    "show $name what its key may use, and nothing else can be called",
    async ({ connect }) => {
      vi.stubEnv("ALICE_KEY", alice);
      await using http = await startSdkServer("v1");
      await using at = await startTestGateway({
        mcpServers: { child: statefulServer(), http: http.entry },
        junctor: { keys },
      });
      await using hers = await connect(at.url, { key: alice });
      await using his = await connect(at.url, { key: bob });
      const own = ["count", "echo", "hold", "release", "chat", "grow"].map((name) => `child__${name}`);
      expect(await namesOf(hers)).toEqual(own);
      expect(await namesOf(his)).toEqual([
        "child__echo",
        ...["echo", "count", "wait", "chat"].map((n) => `http__${n}`),
      ]);
      await expect(hers.call("child__die")).rejects.toThrow(/Unknown tool/);
      await expect(hers.call("http__echo", { message: "hi" })).rejects.toThrow(/Unknown tool/);
      await expect(his.call("child__count")).rejects.toThrow(/Unknown tool/);
      expect(textOf(await his.call("http__echo", { message: "hi" }))).toBe("hi");
      expect(textOf(await hers.call("child__echo", { text: "hi" }))).toBe("hi");

      // Resources and prompts are nobody's but theirs too.
      expect((await hers.listResources()).map(({ uri }) => uri)).toEqual([]);
      await expect(hers.read("v1note://today")).rejects.toThrow(/not found|v1note/i);
      await expect(hers.getPrompt("http__greet", { who: "Ada" })).rejects.toThrow(/Unknown prompt/);
      expect(await his.getPrompt("http__greet", { who: "Ada" })).toMatchObject([{ role: "user" }]);

      // The keys went nowhere.
      const { env } = await count(hers);
      const seen = JSON.stringify([env, http.told, at.log, at.gateway.status()]);
      for (const key of [alice, bob]) expect(seen).not.toContain(key);
      expect(http.told.some(({ headers }) => headers?.["authorization"] !== undefined)).toBe(false);
      for (const key of ["wrong-0123456789-abcdefgh", `${alice}x`, undefined])
        await expect(connect(at.url, key === undefined ? {} : { key })).rejects.toThrow(/401|key/i);
    },
  );

  test("that are wrong or missing get 401 and nothing else", async () => {
    await using at = await startTestGateway({
      mcpServers: { child: statefulServer() },
      junctor: { keys: { bob: { sha256: hash(bob) } } },
    });
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" });
    const ask = async (authorization: string | undefined): Promise<number> => {
      const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
      const given = authorization === undefined ? headers : { ...headers, authorization };
      return (await fetch(at.url, { method: "POST", headers: given, body })).status;
    };
    const wrong = [
      undefined,
      "",
      "Bearer",
      "Bearer ",
      `Basic ${bob}`,
      bob,
      "Bearer wrong",
      `Bearer ${bob} x`,
    ];
    const statuses = await Promise.all(wrong.map(async (header) => [header, await ask(header)] as const));
    expect(statuses).toEqual(wrong.map((header) => [header, 401]));
    expect(await ask(`Bearer ${bob}`)).not.toBe(401);
  });

  test("of one do not open the session of another", async () => {
    await using at = await startTestGateway({
      mcpServers: { child: statefulServer() },
      junctor: { keys: { ...keys, alice: { sha256: hash(alice) } } },
    });
    const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
    const params = {
      protocolVersion: "2025-11-25",
      capabilities: {},
      clientInfo: { name: "t", version: "1" },
    };
    const post = (key: string, message: object, session?: string): Promise<Response> =>
      fetch(at.url, {
        method: "POST",
        headers: {
          ...headers,
          authorization: `Bearer ${key}`,
          ...(session === undefined ? {} : { "mcp-session-id": session }),
        },
        body: JSON.stringify({ jsonrpc: "2.0", ...message }),
      });
    const opened = await post(alice, { id: 1, method: "initialize", params });
    const session = opened.headers.get("mcp-session-id")!;
    await post(alice, { method: "notifications/initialized" }, session);
    expect((await post(alice, { id: 2, method: "tools/list" }, session)).status).toBe(200);
    expect((await post(bob, { id: 2, method: "tools/list" }, session)).status).toBe(404);
  });
});

describe("middleware", () => {
  test("of the user's module filters, changes and sees calls", async () => {
    const file = join(folder, "mine.mjs");
    const seen = join(folder, "seen.txt");
    await writeFile(
      file,
      `import { appendFileSync } from "node:fs";
       export default () => ({
         filterTools: (tools) => tools.filter(({ name }) => name !== "child__die"),
         beforeCall: ({ name }) => { appendFileSync(${JSON.stringify(seen)}, "before " + name + "\\n"); },
         afterCall: ({ name }) => { appendFileSync(${JSON.stringify(seen)}, "after " + (name ?? "") + "\\n"); },
       });`,
    );
    await using at = await startTestGateway(
      { mcpServers: { child: statefulServer() }, junctor: { middleware: ["./mine.mjs"] } },
      { folder },
    );
    await using client = await connectTo(at.url);
    expect(await namesOf(client)).not.toContain("child__die");
    await expect(client.call("child__die")).rejects.toThrow(/Unknown tool/);
    expect(textOf(await client.call("child__echo", { text: "hi" }))).toBe("hi");
    const lines = (await readFile(seen, "utf8")).split("\n");
    expect(lines).toContain("before child__echo");
    expect(lines.some((line) => line.startsWith("after"))).toBe(true);
    expect(at.pidsOf("child")).toHaveLength(1);
  });

  test("that is missing, broken or empty is named before anything starts", async () => {
    const write = async (name: string, text: string): Promise<string> => {
      await writeFile(join(folder, name), text);
      return `./${name}`;
    };
    const modules = [
      "./none.mjs",
      await write("broken.mjs", "export default {"),
      await write("empty.mjs", "export const beforeCall = () => {};"),
      await write("wrong.mjs", "export default { beforeCall: 1 };"),
    ];
    for (const module of modules) {
      const started = startTestGateway(
        { mcpServers: { child: statefulServer() }, junctor: { middleware: [module] } },
        { folder },
      );
      await expect(started).rejects.toMatchObject({
        name: "ConfigError",
        message: expect.stringContaining(module.slice(2)) as unknown,
      });
    }
  });

  test("writes every call to the audit file: answered, refused, failed", async () => {
    const audit = join(folder, "audit.jsonl");
    const key = "alice-0123456789-abcdefgh";
    await using at = await startTestGateway(
      {
        mcpServers: { child: statefulServer() },
        junctor: { audit: "audit.jsonl", keys: { alice: { env: "ALICE_KEY", deny: ["child__chat"] } } },
      },
      { folder, env: { ALICE_KEY: key } },
    );
    await using client = await connectTo(at.url, { key });
    await client.call("child__echo", { text: "a secret text" });
    await client.call("child__chat", { words: "hi" }).catch(() => {});
    await client.call("child__die").catch(() => {});
    await expect.poll(async () => (await readAuditCalls(audit)).length).toBe(3);
    const [answered, refused, lost] = await readAuditCalls(audit);
    expect(answered).toMatchObject({ caller: "alice", tool: "child__echo", outcome: "ok" });
    expect(refused).toMatchObject({ caller: "alice", tool: "child__chat" });
    expect(refused?.outcome).not.toBe("ok");
    expect(lost).toMatchObject({ tool: "child__die", outcome: "upstream.lost", delivery: "outcome_unknown" });
    const text = await readFile(audit, "utf8");
    expect(text).not.toContain(key);
    expect(text).not.toContain("a secret text");
  });

  test("limits the calls of each caller by itself", async () => {
    const keys = { alice: "alice-0123456789-abcdefgh", bob: "bob-0123456789-abcdefghij" };
    await using at = await startTestGateway(
      {
        mcpServers: { child: statefulServer() },
        junctor: {
          keys: { alice: { env: "A" }, bob: { env: "B" } },
          limits: { tools: { "*__echo": { callsPerMinute: 2 } } },
        },
      },
      { env: { A: keys.alice, B: keys.bob } },
    );
    await using hers = await connectTo(at.url, { key: keys.alice });
    await using his = await connectTo(at.url, { key: keys.bob });
    const echo = async (client: GatewayClient): Promise<boolean | undefined> =>
      (await client.call("child__echo", { text: "hi" })).isError;
    expect([await echo(hers), await echo(hers), await echo(hers)]).toEqual([undefined, undefined, true]);
    expect(await echo(his)).toBeUndefined();
    expect((await hers.call("child__count")).isError).toBeUndefined();
  });

  test.each(dialects)(
    "limits the time of a call of $name, and the server is told to stop",
    async ({ connect }) => {
      await using at = await startTestGateway({
        mcpServers: { child: statefulServer() },
        junctor: { limits: { tools: { "*__hold": { callTimeoutMs: 200 } } } },
      });
      await using client = await connect(at.url);
      const ended = await client.call("child__hold", { key: "k" }).then(
        (result) => JSON.stringify(result),
        (error: unknown) => String(error),
      );
      expect(ended).toContain("not done after 0.2 s");
      await expect.poll(() => at.stderrOf("child")).toContain("cancelled k");
      expect(textOf(await client.call("child__echo", { text: "hi" }))).toBe("hi");
    },
  );

  test.each(dialects)(
    "redacts what $name receives, in results and while a call runs",
    async ({ connect }) => {
      await using at = await startTestGateway({
        mcpServers: { child: statefulServer() },
        junctor: { redact: ["/hush-[0-9]+/"] },
      });
      await using client = await connect(at.url);
      const seen: unknown[] = [];
      expect(textOf(await client.call("child__echo", { text: "say hush-42 now" }))).not.toContain("hush-42");
      const held = client.call(
        "child__hold",
        { key: "k", text: "hush-43" },
        { onprogress: (event) => seen.push(event) },
      );
      await expect.poll(() => seen.length).toBe(1);
      await client.call("child__release", { key: "k" });
      await held;
      await client.call("child__chat", { words: "hush-44" }, { wantsLogs: true });
      expect(JSON.stringify([seen, client.logs])).not.toMatch(/hush-[0-9]+/);
    },
  );
});

test("a call that is silent for longer than its server may be is ended, and told to stop", async () => {
  await using at = await startTestGateway({
    mcpServers: { child: statefulServer() },
    junctor: { servers: { child: { timeoutMs: 200 } } },
  });
  await using client = await connectTo(at.url);
  await expect(client.call("child__hold", { key: "k" })).rejects.toMatchObject({
    data: { code: "upstream.timeout", server: "child" },
  });
  await expect.poll(() => at.stderrOf("child")).toContain("cancelled k");
});

test("secrets of the config are not disclosed", async () => {
  const secret = "s3cr3t-0123456789";
  await using at = await startTestGateway(
    {
      mcpServers: {
        child: statefulServer([], { TOKEN: "${TOKEN}" }),
        dead: { command: "${TOKEN}-no-such-command" },
      },
    },
    { env: { ...process.env, TOKEN: secret } },
  );
  await using client = await connectTo(at.url);
  expect((await count(client)).env["TOKEN"]).toBe(secret);
  expect(at.gateway.status()[1]).toMatchObject({ name: "dead", status: "down" });
  expect(JSON.stringify([await client.listTools(), at.gateway.status()])).not.toContain(secret);
});
