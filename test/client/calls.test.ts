import { describe, expect, test } from "vitest";
import type { Client } from "../../packages/client/src/client/client.ts";
import { connect, type ConnectOptions } from "../../packages/client/src/client/connect.ts";
import { ToolError, ValidationError } from "../../packages/core/src/errors/index.ts";
import { RawJson } from "../../packages/core/src/json/raw.ts";
import { FakePipe, type Reaction } from "../support/fake-pipe.ts";
import { echoTool, legacyScript, modernScript, type Script, text } from "../support/fake-script.ts";
import { callTool } from "../support/use-provider.ts";

async function meet(
  script: Script,
  options: ConnectOptions = {},
): Promise<{ client: Client; pipe: FakePipe }> {
  const pipe = new FakePipe(modernScript(script));
  return { pipe, client: await connect(pipe.target, options) };
}

const complete = (result: object): Reaction => ({ result: { resultType: "complete", ...result } });
const calls = ({ methods }: FakePipe): number => methods.filter((method) => method === "tools/call").length;

describe("arguments", () => {
  const nested = {
    name: "nested",
    inputSchema: {
      type: "object",
      properties: { user: { type: "object", properties: { age: { type: "integer", minimum: 0 } } } },
      required: ["user"],
      additionalProperties: false,
    },
  };

  test.each<[object, string]>([
    [{ user: { age: "ten" } }, "/user/age"],
    [{ user: { age: -1 } }, "/user/age"],
    [{}, "user"],
    [{ user: {}, more: 1 }, "more"],
  ])("%j are refused before anything is sent, and the path is named", async (args, path) => {
    const { client, pipe } = await meet({ tools: [nested] });
    const failure = (await client
      .callTool("nested", args)
      .catch((error: unknown) => error)) as ValidationError;
    expect(failure).toBeInstanceOf(ValidationError);
    expect(failure).toMatchObject({ tool: "nested", subject: "arguments", delivery: "not_sent" });
    expect(`${failure.message} ${failure.issues.map((issue) => issue.path).join(" ")}`).toContain(path);
    expect(calls(pipe)).toBe(0);
  });

  test("that fit are sent as they are", async () => {
    const { client, pipe } = await meet({ tools: [nested] });
    await client.callTool("nested", { user: { age: 10 } });
    const { params } = await pipe.heard("tools/call");
    expect(params).toMatchObject({ name: "nested", arguments: { user: { age: 10 } } });
  });

  test("are not checked when that is switched off, for the client or one call", async () => {
    const { client, pipe } = await meet({}, { validate: false });
    await client.callTool("echo", { message: 5 });
    expect(pipe.methods).not.toContain("tools/list");
    const careful = await meet({});
    await careful.client.callTool("echo", { message: 5 }, { validate: false });
    await expect(careful.client.callTool("echo", { message: 5 })).rejects.toThrow(ValidationError);
    expect(calls(careful.pipe)).toBe(1);
  });

  test("of a tool that is not listed are left to the server", async () => {
    const { client } = await meet({ call: () => ({ error: { code: -32602, message: "Unknown tool: x" } }) });
    await expect(client.callTool("x")).rejects.toMatchObject({ rpcCode: -32602, delivery: "answered" });
  });

  test.each<[string, object]>([
    ["of an unknown dialect", { $schema: "https://example.com/dialect", type: "object" }],
    [
      "with a reference to the network",
      { type: "object", properties: { a: { $ref: "https://example.com/a" } } },
    ],
    ["with a reference to nothing", { type: "object", properties: { a: { $ref: "#/$defs/none" } } }],
    ["that is not a schema", { type: "object", minProperties: "objekt" }],
    ["with a pattern that is none", { type: "object", properties: { a: { pattern: "(" } } }],
  ])("by a schema %s are not checked, with one warning", async (_, inputSchema) => {
    const warnings: string[] = [];
    const onWarning = (warning: string): void => void warnings.push(warning);
    const { client, pipe } = await meet({ tools: [{ name: "odd", inputSchema }, echoTool] }, { onWarning });
    await client.callTool("odd", { a: 1 });
    await client.callTool("odd", { a: 1 });
    expect(calls(pipe)).toBe(2);
    expect(warnings).toEqual([expect.stringContaining("A schema of the tool odd is not checked by")]);
    await expect(client.callTool("echo", {})).rejects.toThrow(ValidationError);
  });

  test.each(["http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema"])(
    "are checked by a schema of %s",
    async ($schema) => {
      const strict = { name: "strict", inputSchema: { ...echoTool.inputSchema, $schema } };
      const { client } = await meet({ tools: [strict] });
      await expect(client.callTool("strict", { message: 1 })).rejects.toThrow(ValidationError);
    },
  );
});

describe("structured output", () => {
  const measure = {
    name: "measure",
    inputSchema: { type: "object" },
    outputSchema: { type: "object", properties: { celsius: { type: "number" } }, required: ["celsius"] },
  };

  test("that fits comes with the result", async () => {
    const structuredContent = { celsius: 21.5 };
    const { client } = await meet({
      tools: [measure],
      call: () => complete({ ...text("21.5"), structuredContent }),
    });
    expect(await client.callTool("measure")).toEqual({ ...text("21.5"), structuredContent });
  });

  test.each<[string, object, string]>([
    ["does not fit", { structuredContent: { celsius: "warm" } }, "/celsius"],
    ["is missing", {}, "structuredContent is missing"],
  ])("that %s is a ValidationError of an answered call", async (_, extra, said) => {
    const { client } = await meet({ tools: [measure], call: () => complete({ ...text("?"), ...extra }) });
    const failure = (await client.callTool("measure").catch((error: unknown) => error)) as ValidationError;
    expect(failure).toMatchObject({ subject: "output", delivery: "answered" });
    expect(JSON.stringify([failure.message, failure.issues])).toContain(said);
    expect(await client.callTool("measure", {}, { validate: false })).toMatchObject(text("?"));
  });

  test("is not asked of a tool that failed", async () => {
    const { client } = await meet({
      tools: [measure],
      call: () => complete({ ...text("no"), isError: true }),
    });
    expect(await client.callTool("measure")).toEqual({ ...text("no"), isError: true });
  });
});

describe("a result", () => {
  test("keeps content of every type, and unknown members", async () => {
    const content = [
      { type: "text", text: "a", annotations: { audience: ["user"] } },
      { type: "image", data: "AQID", mimeType: "image/png" },
      { type: "audio", data: "AQID", mimeType: "audio/wav" },
      { type: "resource_link", uri: "note://a", name: "a" },
      { type: "resource", resource: { uri: "note://b", text: "b" } },
      { type: "hologram", beams: 3 },
    ];
    const { client } = await meet({ call: () => complete({ content, _meta: { "example.com/x": 1 } }) });
    const result = await client.callTool("echo", { message: "" });
    expect(result).toEqual({ content, _meta: { "example.com/x": 1 } });
  });

  test("without content has none", async () => {
    const pipe = new FakePipe(legacyScript({ call: () => ({ result: { toolResult: 1 } }) }));
    const client = await connect(pipe.target);
    expect(await client.callTool("echo", { message: "" })).toEqual({ content: [] });
  });

  test("that is an error is a result, or a ToolError on request", async () => {
    const failure = { content: [{ type: "text", text: "No such city." }], isError: true };
    const { client } = await meet({ call: () => complete(failure) });
    expect(await client.callTool("echo", { message: "" })).toEqual(failure);
    const thrown = client.callTool("echo", { message: "" }, { throwOnToolError: true });
    await expect(thrown).rejects.toThrow(ToolError);
    await expect(thrown).rejects.toMatchObject({ message: "No such city.", delivery: "answered" });
  });

  test("of an unknown type is an error", async () => {
    const { client } = await meet({ call: () => ({ result: { resultType: "hologram", content: [] } }) });
    await expect(client.callTool("echo", { message: "" })).rejects.toThrow(/unknown type "hologram"/);
  });
});

describe("a failure says what became of the call", () => {
  test("an error of the server was answered", async () => {
    const data = { hint: 1 };
    const { client } = await meet({ call: () => ({ error: { code: -32099, message: "broken", data } }) });
    await expect(client.callTool("echo", { message: "" })).rejects.toMatchObject({
      name: "RpcError",
      message: "broken",
      rpcCode: -32099,
      data,
      delivery: "answered",
    });
  });

  test("a server that leaves during a call leaves its outcome unknown", async () => {
    const pipe = new FakePipe((message) => {
      if (message.method !== "tools/call") return modernScript()(message);
      pipe.end();
      return undefined;
    });
    const client = await connect(pipe.target);
    await expect(client.callTool("echo", { message: "" })).rejects.toMatchObject({
      name: "ClosedError",
      delivery: "outcome_unknown",
    });
  });

  test("a server that leaves while its tools are looked up was never sent the call", async () => {
    const pipe = new FakePipe((message) => {
      if (message.method !== "tools/list") return modernScript()(message);
      pipe.end();
      return undefined;
    });
    const client = await connect(pipe.target);
    await expect(client.callTool("echo", { message: "" })).rejects.toMatchObject({ delivery: "not_sent" });
  });

  test("a server that is gone, and a client that is closed, are not sent to", async () => {
    const { client, pipe } = await meet({});
    await client.listTools();
    pipe.end();
    await expect.poll(() => pipe.target.writable.destroyed).toBe(true);
    await expect(client.callTool("echo", { message: "" })).rejects.toMatchObject({
      name: "ConnectError",
      delivery: "not_sent",
    });
    await client[Symbol.asyncDispose]();
    await expect(client.callTool("echo", { message: "" })).rejects.toMatchObject({
      name: "ClosedError",
      delivery: "not_sent",
    });
  });
});

test("a forwarded call keeps its arguments and its result byte for byte", async () => {
  const args = '{ "z":1.0, "a":12345678901234567890 }';
  const result = '{"resultType":"complete","content":[],"structuredContent":{"n":1e400,"m":-0}}';
  const lines: string[] = [];
  const pipe = new FakePipe((message) => {
    if (message.method !== "tools/call") return modernScript()(message);
    pipe.send(`{"jsonrpc":"2.0","id":${JSON.stringify(message.id)},"result":${result}}`);
    return undefined;
  });
  pipe.target.writable.on("data", (line: string) => lines.push(line));
  const client = await connect(pipe.target);
  const outcome = await callTool(client, "echo", RawJson.fromChecked(Buffer.from(args)));
  expect(lines.join("")).toContain(`"arguments":${args}`);
  expect(outcome).toMatchObject({ kind: "complete" });
  expect(outcome.kind === "complete" && outcome.result.text).toBe(result);
});

test("any other request can be made, and its answer read", async () => {
  const first = ({ method }: { readonly method?: string }): Reaction =>
    method === "example/add" ? complete({ sum: 3 }) : undefined;
  const { client, pipe } = await meet({ first });
  expect(await client.request("example/add", { a: 1 })).toMatchObject({ sum: 3 });
  expect((await pipe.heard("example/add")).params).toMatchObject({ a: 1 });
});
