// What the admin API shows of a gateway, and what it moves.
import { createHash } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { createDemoRegistry } from "../../packages/junctor/src/cli/serve/demo.ts";
import { deadServer, statefulServer } from "../gateway/support/servers.ts";
import { json, mirrored, modernCall, toPairs } from "../support/http-wire.ts";
import { createTestIssuer, type TestIssuer } from "../support/issuer.ts";
import type { Frame } from "../support/wire-schema.ts";
import { startAdmin, type TestAdmin } from "./support/admin.ts";

const asking = fileURLToPath(new URL("../fixtures/bridge-upstream.mjs", import.meta.url));
const keyOf = (name: string): string => `${name}-0123456789-abcdefgh`;
const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");
const local = { demo: createDemoRegistry() };

/** Makes a modern call over HTTP, and gives its status and its answer. */
async function post(
  admin: TestAdmin,
  message: Frame,
  key?: string,
): Promise<{ status: number; body: unknown }> {
  const headers = {
    ...mirrored(message),
    "content-type": json,
    accept: json,
    authorization: key && `Bearer ${key}`,
  };
  const response = await fetch(admin.url, {
    method: "POST",
    headers: toPairs(headers) as [string, string][],
    body: JSON.stringify(message),
  });
  return { status: response.status, body: await response.json() };
}

async function callTool(
  admin: TestAdmin,
  name: string,
  args: object = {},
  more: object = {},
): Promise<unknown> {
  return (await post(admin, modernCall(name, args, { ...more }))).body;
}

describe("servers", () => {
  test("that are up, down and of this process are distinguished, with the reason and the next try", async () => {
    await using admin = await startAdmin(
      { mcpServers: { store: statefulServer(), dead: deadServer } },
      { local },
    );
    const { servers } = (await admin.call("/api/servers")).json;
    expect(servers).toMatchObject([
      { name: "demo", status: "up", kind: "local", canRestart: false, tools: 4 },
      { name: "store", status: "up", kind: "command", canRestart: true, era: "legacy" },
      { name: "dead", kind: "command" },
    ]);
    // It is down and being started in turns.
    await expect
      .poll(async () => (await admin.call("/api/servers/dead")).json)
      .toMatchObject({ status: "down", code: "exited", reason: expect.stringContaining("3") as string });
    await expect.poll(async () => (await admin.call("/api/servers/dead")).json.nextTryAt).toBeGreaterThan(0);
    expect((await admin.call("/api/servers/dead")).json.advice).toContain("by hand");
    const { problems } = (await admin.call("/api/problems")).json;
    expect(problems).toMatchObject([{ severity: "error", where: "dead", server: "dead" }]);
    expect((await admin.call("/api/status")).json).toMatchObject({
      state: "ready",
      problems: 1,
      hasKeys: false,
    });
  });

  test("restart, stop and start are done, and calls to a stopped one say that they were not sent", async () => {
    await using admin = await startAdmin({ mcpServers: { store: statefulServer() } });
    const pid = async (): Promise<number> => {
      const { result } = (await callTool(admin, "store__count")) as never;
      return (result as { structuredContent: { pid: number } }).structuredContent.pid;
    };
    const first = await pid();
    expect((await admin.call("/api/servers/store/restart", { body: {} })).json.status).toBe("up");
    expect(await pid()).not.toBe(first);
    expect((await admin.call("/api/servers/store/stop", { body: {} })).json.status).toBe("stopped");
    expect(await callTool(admin, "store__count")).toMatchObject({
      error: { data: { code: "upstream.unavailable", delivery: "not_sent" } },
    });
    expect((await admin.call("/api/servers/store/start", { body: {} })).json.status).toBe("up");
    expect(await pid()).not.toBe(first);
    expect((await admin.call("/api/servers/store")).json.restarts).toBeGreaterThanOrEqual(2);
  });

  test("of this process cannot be stopped", async () => {
    await using admin = await startAdmin({ mcpServers: {} }, { local });
    const reply = await admin.call("/api/servers/demo/stop", { body: {} });
    expect([reply.status, reply.json.error.code]).toEqual([409, "admin.conflict"]);
  });
});

describe("callers", () => {
  const keys = {
    ada: { sha256: sha256(keyOf("ada")) },
    bob: { sha256: sha256(keyOf("bob")), allow: ["echo"] },
  };
  const config = { mcpServers: {}, junctor: { keys } };
  const list = async (admin: TestAdmin, name: string): Promise<number> =>
    (await post(admin, modernCall("echo", { message: "hi" }), keyOf(name))).status;

  test("are shown with what each may see", async () => {
    await using admin = await startAdmin(config, { local });
    const names = async (query: string): Promise<readonly string[]> =>
      (await admin.call(`/api/catalog${query}`)).json.tools.map(({ name }) => name);
    expect(await names("")).toHaveLength(4);
    expect(await names("?as=ada")).toHaveLength(4);
    expect(await names("?as=bob")).toEqual(["echo"]);
    expect((await admin.call("/api/catalog?as=eve")).status).toBe(404);
    const { callers, unnamed } = (await admin.call("/api/callers")).json;
    expect([callers.map(({ name, tools }) => [name, tools]), unnamed]).toEqual([
      [
        ["ada", 4],
        ["bob", 1],
      ],
      false,
    ]);
  });

  test("are refused once revoked, and let in again once restored", async () => {
    await using admin = await startAdmin(config, { local });
    expect(await list(admin, "ada")).toBe(200);
    expect((await admin.call("/api/callers/ada/revoke", { body: {} })).json).toEqual({
      name: "ada",
      isRevoked: true,
    });
    expect([await list(admin, "ada"), await list(admin, "bob")]).toEqual([401, 200]);
    await admin.call("/api/callers/ada/restore", { body: {} });
    expect(await list(admin, "ada")).toBe(200);
    const metrics = (await admin.call("/metrics")).text;
    expect(metrics).toContain('junctor_refused_requests_total{reason="no_key"} 1');
    expect(metrics).not.toMatch(/ada|bob/);
  });

  test("lend their rights to calls from the page, and no more", async () => {
    await using admin = await startAdmin(config, { local });
    const nobody = await admin.call("/api/try", { body: { tool: "echo", arguments: { message: "x" } } });
    expect([nobody.status, nobody.json.error.message]).toEqual([400, expect.stringContaining("ada, bob")]);
    using bob = await admin.open("/api/try", { tool: "add", arguments: { a: 1, b: 2 }, as: "bob" });
    await expect.poll(() => bob.isEnded).toBe(true);
    expect(bob.of("error")).toMatchObject([{ error: { code: -32602 } }]);
    using ada = await admin.open("/api/try", { tool: "add", arguments: { a: 1, b: 2 }, as: "ada" });
    await expect.poll(() => ada.isEnded).toBe(true);
    expect(ada.of("result")).toMatchObject([{ isError: false, result: { content: [{ text: "3" }] } }]);
  });
});

describe("a call from the page", () => {
  test("streams, is shown in the feed, and its arguments and result are kept", async () => {
    await using admin = await startAdmin({ mcpServers: {} }, { local });
    using events = await admin.open("/api/events?only=calls");
    await expect.poll(() => events.of("hello")).toHaveLength(1);
    using tried = await admin.open("/api/try", { tool: "countdown", arguments: { from: 2 } });
    await expect.poll(() => tried.isEnded).toBe(true);
    expect(tried.of("progress").map(({ message }) => message)).toEqual(["2 ", "1 ", "liftoff"]);
    const { call } = tried.first("began");
    expect((await admin.call(`/api/calls/${call}`)).json).toMatchObject({
      tool: "countdown",
      state: "ended",
      outcome: "ok",
      isFromPage: true,
      arguments: { from: 2 },
      result: { content: [{ text: "2 1 liftoff" }] },
      cut: false,
    });
    await expect
      .poll(() => events.of("calls").flatMap(({ calls }) => calls))
      .toContainEqual(expect.objectContaining({ id: call, state: "ended" }));
  });

  test("is asked what the tool asks, is one call over both rounds, and an answer that does not fit is refused", async () => {
    await using admin = await startAdmin({ mcpServers: {} }, { local });
    using tried = await admin.open("/api/try", { tool: "greet" });
    await expect.poll(() => tried.of("question")).toHaveLength(1);
    const { try: id, call } = tried.first("began");
    expect((await admin.call(`/api/calls/${call}`)).json).toMatchObject({ state: "parked" });
    const wrong = await admin.call(`/api/try/${id}/answers`, {
      body: { answers: { name: { action: "maybe" } } },
    });
    expect([wrong.status, wrong.json.error.message]).toEqual([400, expect.stringContaining("answers.name")]);
    const content = { name: "Ada" };
    await admin.call(`/api/try/${id}/answers`, {
      body: { answers: { name: { action: "accept", content } } },
    });
    await expect.poll(() => tried.isEnded).toBe(true);
    expect(tried.of("result")).toMatchObject([{ result: { content: [{ text: "Hello, Ada!" }] } }]);
    const shown = (await admin.call(`/api/calls/${call}`)).json;
    expect(shown.steps.map(({ state }) => state)).toEqual(["queued", "asked", "parked", "answered", "ended"]);
    expect((await admin.call("/api/calls")).json.recent).toHaveLength(1);
  });

  test("is cancelled by the page, and by a page that is closed", async () => {
    await using admin = await startAdmin({ mcpServers: {} }, { local });
    using first = await admin.open("/api/try", { tool: "countdown", arguments: { from: 100 } });
    await expect.poll(() => first.of("progress").length).toBeGreaterThan(0);
    const { try: id } = first.first("began");
    expect((await admin.call(`/api/try/${id}`, { method: "DELETE" })).status).toBe(200);
    await expect.poll(() => first.isEnded).toBe(true);
    const second = await admin.open("/api/try", { tool: "countdown", arguments: { from: 100 } });
    await expect.poll(() => second.of("progress").length).toBeGreaterThan(0);
    second[Symbol.dispose]();
    await expect.poll(async () => (await admin.call("/api/calls")).json.underway).toEqual([]);
    const { recent } = (await admin.call("/api/calls")).json;
    expect(recent.map(({ outcome }) => outcome)).toEqual(["cancelled", "cancelled"]);
    expect((await admin.call(`/api/try/${id}`, { method: "DELETE" })).status).toBe(404);
  });
});

test("a parked call is listed with its question, and its rounds are one call", async () => {
  const server = { command: process.execPath, args: [asking, "--serves", "legacy"] };
  await using admin = await startAdmin({ mcpServers: { asking: server } });
  const capabilities = { "io.modelcontextprotocol/clientCapabilities": { elicitation: { form: {} } } };
  const args = { nonce: "n", rounds: [["form"]] };
  const first = (await callTool(admin, "asking__ask", args, { _meta: capabilities })) as {
    result: { inputRequests: { [key: string]: object }; requestState: string };
  };
  const { parked } = (await admin.call("/api/parked")).json;
  expect(parked).toMatchObject([
    {
      server: "asking",
      tool: "asking__ask",
      waitsFor: "caller",
      questions: [{ method: "elicitation/create" }],
    },
  ]);
  const [key = ""] = Object.keys(first.result.inputRequests);
  const inputResponses = { [key]: { action: "accept", content: { nonce: "n" } } };
  const { requestState } = first.result;
  await callTool(admin, "asking__ask", args, { _meta: capabilities, inputResponses, requestState });
  expect((await admin.call("/api/parked")).json.parked).toEqual([]);
  const { recent } = (await admin.call("/api/calls")).json;
  expect(recent).toHaveLength(1);
  expect(recent[0]?.steps.map(({ state }) => state)).toEqual([
    "queued",
    "sent",
    "asked",
    "parked",
    "answered",
    "ended",
  ]);
  expect((await admin.call("/metrics")).text).toContain('junctor_questions_total{server="asking"} 1');
});

test("arguments and results of servers are kept only where the config says so, without its secrets", async () => {
  const secret = "hunter2-0123456789";
  const open = { ...statefulServer(), env: { TOKEN: secret } };
  await using admin = await startAdmin({
    mcpServers: { open, closed: statefulServer() },
    junctor: { servers: { open: { record: true } } },
  });
  await callTool(admin, "open__echo", { text: `it is ${secret}` });
  await callTool(admin, "closed__echo", { text: "quiet" });
  const { recent } = (await admin.call("/api/calls")).json;
  const shown = await Promise.all(recent.map(async ({ id }) => (await admin.call(`/api/calls/${id}`)).json));
  expect(shown).toMatchObject([
    { server: "closed" },
    { server: "open", arguments: { text: "it is [secret]" } },
  ]);
  expect(shown[0]).not.toHaveProperty("arguments");
  expect(JSON.stringify(recent)).not.toContain("quiet");
  expect(JSON.stringify(shown)).not.toContain(secret);
});

test("a server that is killed is reported as down, and then as up again", async () => {
  await using admin = await startAdmin({ mcpServers: { store: statefulServer() } });
  using events = await admin.open("/api/events?only=server,log");
  await expect.poll(() => events.of("hello")).toHaveLength(1);
  await callTool(admin, "store__die");
  await expect.poll(() => events.of("server").map(({ status }) => status)).toContain("up");
  await expect.poll(() => JSON.stringify(events.of("log"))).toContain("store is down");
  expect((await admin.call("/api/logs?level=warn")).json.lines).toMatchObject([
    { level: "warn", text: "store is down" },
  ]);
});

test("draining, stopping and the level of the log", async () => {
  await using admin = await startAdmin({ mcpServers: {} }, { local });
  expect((await admin.call("/api/log-level", { method: "PUT", body: { level: "error" } })).json).toEqual({
    level: "error",
  });
  expect(admin.log.level).toBe("error");
  const health = async (path: string): Promise<number> => (await fetch(new URL(path, admin.url))).status;
  expect([await health("/live"), await health("/ready"), await health("/health")]).toEqual([200, 200, 200]);
  expect((await admin.call("/api/drain", { body: {} })).json.state).toBe("draining");
  expect([await health("/live"), await health("/ready"), await health("/health")]).toEqual([200, 503, 503]);
  expect((await admin.call("/ready")).json).toEqual({ status: "draining" });
  expect((await admin.call("/api/stop", { body: {} })).status).toBe(202);
  expect(admin.isStopAsked()).toBe(true);
  expect((await admin.call("/api/reload", { body: {} })).status).toBe(409);
});

test("the admin port says what the MCP port says while the gateway stops", async () => {
  await using admin = await startAdmin({ mcpServers: {} }, { local });
  admin.listener.drain();
  const answers = await Promise.all(
    ["/live", "/ready", "/health", "/api/status"].map((path) => admin.call(path)),
  );
  expect(answers.map(({ status }) => status)).toEqual([200, 503, 503, 200]);
  expect(answers.at(-1)?.json.state).toBe("draining");
});

test("the start of the process is the same in every scrape", async () => {
  await using admin = await startAdmin({ mcpServers: {} }, { local });
  const read = async (): Promise<string | undefined> =>
    /^process_start_time_seconds .*$/m.exec((await admin.call("/metrics")).text)?.[0];
  const first = await read();
  expect(first).toMatch(/ \d+(\.\d+)?$/);
  expect(await read()).toBe(first);
});

test("a caller with a token is known from its first call: what it may see, and calls from the page with its rights", async () => {
  const audience = "https://mcp.example.com/mcp";
  let issuer: TestIssuer | undefined;
  const web = createServer((incoming, response) => {
    void issuer?.fetch(`${issuer.url}${incoming.url}`, {}).then(async (answer) => {
      response.writeHead(answer.status, { "content-type": "application/json" }).end(await answer.text());
    });
  });
  await new Promise<void>((resolve) => void web.listen(0, "127.0.0.1", resolve));
  const { port } = web.address() as AddressInfo;
  issuer = await createTestIssuer({ url: `http://127.0.0.1:${port}`, audience });
  await issuer.addKey("one");
  await using admin = await startAdmin(
    {
      mcpServers: {},
      junctor: {
        http: { publicUrl: audience },
        issuers: { corp: { issuer: issuer.url } },
        rules: [{ allow: ["echo"], when: "'eng' in caller.groups" }],
      },
    },
    { local },
  );
  const tryEcho = { tool: "echo", arguments: { message: "x" } };
  expect((await admin.call("/api/callers")).json).toEqual({ callers: [], unnamed: false });
  expect((await admin.call("/api/try", { body: tryEcho })).status).toBe(400);
  const token = await issuer.sign({ sub: "ada", groups: ["eng"] });
  expect((await post(admin, modernCall("echo", { message: "hi" }), token)).status).toBe(200);
  const { callers } = (await admin.call("/api/callers")).json;
  expect(callers).toMatchObject([{ name: "corp:ada", tools: 1 }]);
  expect((await admin.call("/api/catalog?as=corp:ada")).json.tools).toMatchObject([{ name: "echo" }]);
  using ada = await admin.open("/api/try", { ...tryEcho, as: "corp:ada" });
  await expect.poll(() => ada.isEnded).toBe(true);
  expect(ada.of("result")).toMatchObject([{ isError: false }]);
  using more = await admin.open("/api/try", { tool: "add", arguments: { a: 1, b: 2 }, as: "corp:ada" });
  await expect.poll(() => more.isEnded).toBe(true);
  expect(more.of("error")).toMatchObject([{ error: { code: -32602 } }]);
  await admin.call("/api/callers/corp:ada/revoke", { body: {} });
  expect((await post(admin, modernCall("echo", { message: "hi" }), token)).status).toBe(401);
  web.close();
});
