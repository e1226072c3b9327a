// Seed 002: calling tools from a client. Each feature it asks for, against a mock server that speaks raw JSON, over each
// way there is to one.
import { type AddressInfo, createServer } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import type { Client } from "../../packages/client/src/client/client.ts";
import { connect, type ConnectOptions } from "../../packages/client/src/client/connect.ts";
import { createEraCache } from "../../packages/client/src/client/negotiate.ts";
import type { AuditRecord } from "../../packages/core/src/provider/audit.ts";
import { createRegistry } from "../../packages/server/src/registry/registry.ts";
import { createServer as createMcpServer } from "../../packages/server/src/wire/server.ts";
import { FakeHttp, toReply } from "../support/fake-http.ts";
import { FakePipe, type Reaction } from "../support/fake-pipe.ts";
import { legacyScript, modernScript, text } from "../support/fake-script.ts";
import { freePort } from "../support/free-ports.ts";
import type { Message } from "../support/raw-http.ts";

const tools = [
  {
    name: "example-tool",
    description: "Example tool description",
    inputSchema: { type: "object", properties: { n: { type: "integer" } }, required: ["n"] },
  },
  { name: "second", inputSchema: { type: "object" } },
  { name: "third", inputSchema: { type: "object" } },
];

const content = [
  { type: "text", text: "hello" },
  { type: "image", data: "AQID", mimeType: "image/png" },
  { type: "audio", data: "AQID", mimeType: "audio/wav" },
  { type: "resource", resource: { uri: "note://a", text: "a" } },
];

/** Two pages of tools, and a tool for each way a call can end. */
function mock(era: "modern" | "legacy"): { react: (message: Message) => Reaction; heard: Message[] } {
  const heard: Message[] = [];
  const first = (message: Message): Reaction | "silence" => {
    heard.push(message);
    const hints = era === "modern" ? { resultType: "complete", ttlMs: 60_000, cacheScope: "private" } : {};
    if (message.method === "tools/list") {
      const isFirst = message.params?.["cursor"] === undefined;
      const page = isFirst ? { tools: tools.slice(0, 2), nextCursor: "page 2" } : { tools: tools.slice(2) };
      return { result: { ...page, ...hints } };
    }
    if (message.method !== "tools/call") return undefined;
    switch (message.params?.["name"]) {
      case "example-tool":
        return { result: { content } };
      case "second":
        return { result: { ...text("it broke"), isError: true } };
      case "third":
        return "silence";
      default:
        return { error: { code: -32602, message: "Unknown tool" } };
    }
  };
  return { react: era === "modern" ? modernScript({ first }) : legacyScript({ first }), heard };
}

type Way = "streams" | "HTTP" | "TCP";

async function meet(
  era: "modern" | "legacy",
  way: Way,
  options: ConnectOptions = {},
): Promise<{ client: Client; heard: readonly Message[] }> {
  const { react, heard } = mock(era);
  const target = await open(way, react);
  const client = await connect(target, { eras: createEraCache(), ...options });
  onTestFinished(() => client[Symbol.asyncDispose]());
  return { client, heard };
}

async function open(way: Way, react: (message: Message) => Reaction): Promise<Parameters<typeof connect>[0]> {
  if (way === "streams") return new FakePipe(react).target;
  if (way === "HTTP") {
    const server = await FakeHttp.listen((request) => {
      if (request.verb !== "POST") return { status: 405 };
      const reaction = react(request.message!);
      const isSilent = request.message?.id !== undefined && reaction === undefined;
      return isSilent ? undefined : toReply(request, reaction);
    });
    onTestFinished(() => server[Symbol.asyncDispose]());
    return server.url;
  }
  const server = createServer((socket) => {
    const pipe = new FakePipe(react);
    socket.pipe(pipe.target.writable);
    pipe.target.readable.pipe(socket);
    socket.on("error", () => {});
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  return `tcp://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const called = (heard: readonly Message[]): number =>
  heard.filter(({ method }) => method === "tools/call").length;
const listed = (heard: readonly Message[]): number =>
  heard.filter(({ method }) => method === "tools/list").length;

const ways = (["modern", "legacy"] as const).flatMap((era) =>
  (["streams", "HTTP", "TCP"] as const).map((way) => [era, way] as const),
);

describe.each(ways)("a %s mock server over %s", (era, way) => {
  test("list-tools gives every page", async () => {
    const { client } = await meet(era, way);
    expect(await client.listTools()).toEqual(tools);
  });

  test("available-tools tells whether there are any", async () => {
    const { client } = await meet(era, way);
    expect(await client.availableTools()).toBe(true);
  });

  test("call-tool gives a result with content of every type, and isError", async () => {
    const { client } = await meet(era, way);
    expect(await client.callTool("example-tool", { n: 1 })).toEqual({ content });
    expect(await client.callTool("second")).toEqual({ ...text("it broke"), isError: true });
  });

  test("the list is kept, and shared by list and call", async () => {
    const { client, heard } = await meet(era, way);
    await client.callTool("example-tool", { n: 1 });
    await client.callTool("example-tool", { n: 2 });
    expect(listed(heard)).toBe(2);
    if (era === "modern" || way !== "HTTP") await client.listTools();
    expect(listed(heard)).toBe(2);
  });

  test("a protocol error, a failure of the tool, a time-out and a validation error are four types", async () => {
    const { client, heard } = await meet(era, way);
    const failure = (call: Promise<unknown>): Promise<unknown> => call.catch((error: unknown) => error);
    expect(await failure(client.callTool("missing"))).toMatchObject({ name: "RpcError", rpcCode: -32602 });
    const thrown = client.callTool("second", {}, { throwOnToolError: true });
    expect(await failure(thrown)).toMatchObject({ name: "ToolError", message: "it broke" });
    expect(await failure(client.callTool("third", {}, { timeoutMs: 20 }))).toMatchObject({
      name: "TimeoutError",
      kind: "idle",
    });
    const before = called(heard);
    expect(await failure(client.callTool("example-tool", { n: "one" }))).toMatchObject({
      name: "ValidationError",
      issues: [{ path: "/n" }],
    });
    expect(called(heard)).toBe(before);
  });

  test("the time a tool may take is configurable, for all and for one", async () => {
    const { client } = await meet(era, way, { timeoutMs: 20 });
    await expect(client.callTool("third")).rejects.toMatchObject({ timeoutMs: 20 });
    // The list of tools, which is fetched first, has the time of all; on a busy machine it may need more than one try.
    const late = (): Promise<unknown> =>
      client.callTool("third", {}, { timeoutMs: 10 }).catch((error: unknown) => error);
    await expect.poll(late).toMatchObject({ timeoutMs: 10 });
  });

  test("use of tools is written down", async () => {
    const records: AuditRecord[] = [];
    const { client } = await meet(era, way, { audit: { sink: (record) => void records.push(record) } });
    await client.callTool("example-tool", { n: 1 });
    await client.callTool("second");
    await client.callTool("example-tool", { n: "one" }).catch(() => {});
    expect(records.map(({ tool, outcome, era: spoken }) => [tool, outcome, spoken])).toEqual([
      ["example-tool", "ok", era],
      ["second", "tool_error", era],
      ["example-tool", "refused", era],
    ]);
  });
});

test("a malformed answer is a protocol error, not a crash", async () => {
  const pipe = new FakePipe((message) => {
    if (message.method !== "tools/call") return modernScript()(message);
    pipe.send(`{"jsonrpc":"2.0","id":${JSON.stringify(message.id)},"error":"no object"}`);
    pipe.end();
    return undefined;
  });
  const client = await connect(pipe.target);
  await expect(client.callTool("echo", { message: "" })).rejects.toMatchObject({ name: "RpcError" });
});

test("a server in this process is a server like any other", async () => {
  const registry = createRegistry();
  registry.register("add", { input: tools[0]!.inputSchema }, ({ n }) => String(Number(n) + 1));
  await using client = await connect({
    server: createMcpServer(registry, { name: "here", version: "1.0.0" }),
  });
  expect(await client.callTool("add", { n: 1 })).toMatchObject({ content: [{ text: "2" }] });
  await expect(client.callTool("add", { n: "x" })).rejects.toMatchObject({ name: "ValidationError" });
});

test("what is no target is refused with what to write instead", async () => {
  await expect(connect("not a url")).rejects.toThrow(/write a URL such as/);
  await expect(connect("ftp://example.com")).rejects.toThrow(/use http, https or tcp/);
  await expect(connect(`tcp://127.0.0.1:${await freePort()}`)).rejects.toMatchObject({
    name: "ConnectError",
  });
});
