import { describe, expect, onTestFinished, test } from "vitest";
import type { Client } from "../../packages/client/src/client/client.ts";
import { connect, type ConnectOptions } from "../../packages/client/src/client/connect.ts";
import { createEraCache } from "../../packages/client/src/client/negotiate.ts";
import { FakeHttp, toReply } from "../support/fake-http.ts";
import { modernScript, type Script } from "../support/fake-script.ts";
import { listen } from "../support/http-tools.ts";

async function meet(
  script: Script,
  options: ConnectOptions = {},
): Promise<{ client: Client; server: FakeHttp; headersOf: (method: string) => readonly object[] }> {
  const server = await FakeHttp.listen((request) => {
    const reaction = modernScript(script)(request.message!);
    const isError = reaction !== undefined && "error" in reaction;
    return { ...toReply(request, reaction), ...(isError ? { status: 400 } : {}) };
  });
  onTestFinished(() => server[Symbol.asyncDispose]());
  const client = await connect(server.url, { eras: createEraCache(), ...options });
  onTestFinished(() => client[Symbol.asyncDispose]());
  return { client, server, headersOf: (method) => server.calls(method).map(({ headers }) => headers) };
}

const mirroring = (properties: object): object => ({
  name: "deploy",
  inputSchema: { type: "object", properties },
});

describe("a modern request over HTTP says in its headers what it is about", () => {
  test("its method, and the name of the tool", async () => {
    const { client, headersOf } = await meet({});
    await client.callTool("echo", { message: "" });
    expect(headersOf("tools/call")).toMatchObject([{ "mcp-method": "tools/call", "mcp-name": "echo" }]);
    expect(headersOf("tools/list")[0]).not.toHaveProperty("mcp-name");
  });

  test.each([
    ["größe", "=?base64?Z3LDtsOfZQ==?="],
    [" padded ", "=?base64?IHBhZGRlZCA=?="],
    ["two words", "two words"],
    ["=?base64?eA==?=", "=?base64?PT9iYXNlNjQ/ZUE9PT89?="],
    ["line\nbreak", "=?base64?bGluZQpicmVhaw==?="],
  ])("a name like %j is encoded where it must be", async (name, encoded) => {
    const { client, headersOf } = await meet({ tools: [{ name, inputSchema: { type: "object" } }] });
    await client.callTool(name);
    expect(headersOf("tools/call")).toMatchObject([{ "mcp-name": encoded }]);
  });

  test.each<[object, unknown, string | undefined]>([
    [{ type: "string" }, "eu-west", "eu-west"],
    [{ type: "string" }, "Zürich", "=?base64?WsO8cmljaA==?="],
    [{ type: "string" }, "", ""],
    [{ type: "integer" }, 42, "42"],
    [{ type: "boolean" }, false, "false"],
    [{ type: "string" }, undefined, undefined],
  ])("an argument marked in %j with the value %j", async (schema, value, expected) => {
    const { client, headersOf } = await meet({
      tools: [mirroring({ a: { ...schema, "x-mcp-header": "Region" } })],
    });
    await client.callTool("deploy", value === undefined ? {} : { a: value });
    const [headers] = headersOf("tools/call");
    if (expected === undefined) expect(headers).not.toHaveProperty("mcp-param-region");
    else expect(headers).toMatchObject({ "mcp-param-region": expected });
  });

  test("an argument that is null is not mirrored, and a nested one is", async () => {
    const { client, headersOf } = await meet({
      tools: [
        mirroring({
          a: { type: "string", "x-mcp-header": "A" },
          b: { type: "object", properties: { c: { type: "string", "x-mcp-header": "C" } } },
        }),
      ],
    });
    await client.callTool("deploy", { a: null, b: { c: "deep" } }, { validate: false });
    expect(headersOf("tools/call")[0]).toMatchObject({ "mcp-param-c": "deep" });
    expect(headersOf("tools/call")[0]).not.toHaveProperty("mcp-param-a");
  });

  test("and our own server, which holds both against each other, agrees", async () => {
    const server = await listen();
    onTestFinished(() => server[Symbol.asyncDispose]());
    await using client = await connect(`http://127.0.0.1:${server.port}/mcp`);
    const args = { region: "Zürich ", level: 7, isDry: true };
    const { content } = await client.callTool("deploy", args);
    expect(content).toEqual([{ type: "text", text: JSON.stringify(args) }]);
  });
});

describe("a tool with an x-mcp-header that cannot be used", () => {
  const faulty = [
    { a: { type: "string", "x-mcp-header": "no token" } },
    { a: { type: "string", "x-mcp-header": "" } },
    { a: { type: "number", "x-mcp-header": "N" } },
    { a: { type: "string", "x-mcp-header": "X" }, b: { type: "string", "x-mcp-header": "x" } },
    { a: { type: "array", items: { type: "string", "x-mcp-header": "X" } } },
  ];
  test.each(faulty)("%j is left out alone, with a warning", async (properties) => {
    const warnings: string[] = [];
    const onWarning = (warning: string): void => void warnings.push(warning);
    const good = { name: "good", inputSchema: { type: "object" } };
    const { client } = await meet({ tools: [mirroring(properties), good] }, { onWarning });
    expect((await client.listTools()).map(({ name }) => name)).toEqual(["good"]);
    expect(warnings).toEqual([expect.stringMatching(/Left out of tools\/list: deploy: .*x-mcp-header/)]);
  });
});

describe("a server that finds the headers wrong (-32020)", () => {
  const versions = [{ type: "string" }, { type: "string", "x-mcp-header": "Zone" }];

  test("is asked for its list again, and called once more with what that says", async () => {
    let version = 0;
    const tools = (): object[] => [mirroring({ zone: versions[version]! })];
    const script: Script = {
      ttlMs: 60_000,
      first: ({ method }) =>
        method === "tools/list"
          ? { result: { tools: tools(), ttlMs: 60_000, resultType: "complete" } }
          : undefined,
      call: () =>
        version === 0
          ? ((version = 1), { error: { code: -32020, message: "Mcp-Param-Zone is missing" } })
          : { result: { resultType: "complete", content: [] } },
    };
    const { client, server, headersOf } = await meet(script);
    await client.callTool("deploy", { zone: "a" });
    expect(server.methods).toEqual([
      "server/discover",
      "tools/list",
      "tools/call",
      "tools/list",
      "tools/call",
    ]);
    expect(headersOf("tools/call")[0]).not.toHaveProperty("mcp-param-zone");
    expect(headersOf("tools/call")[1]).toMatchObject({ "mcp-param-zone": "a" });
    const [first, second] = server.calls("tools/call");
    expect(first?.message?.id).not.toBe(second?.message?.id);
  });

  test("a second time is an error", async () => {
    const { client, server } = await meet({
      call: () => ({ error: { code: -32020, message: "still wrong" } }),
    });
    await expect(client.callTool("echo", { message: "" })).rejects.toMatchObject({ rpcCode: -32020 });
    expect(server.calls("tools/call")).toHaveLength(2);
  });
});

test("headers of the user go with every request, and a function is asked each time", async () => {
  let token = 0;
  const headers = (): Promise<{ authorization: string }> =>
    Promise.resolve({ authorization: `Bearer ${++token}` });
  const { client, server } = await meet({}, { headers });
  await client.callTool("echo", { message: "" });
  expect(server.heard.map((request) => request.headers.authorization)).toEqual([
    "Bearer 1",
    "Bearer 2",
    "Bearer 3",
  ]);
});
