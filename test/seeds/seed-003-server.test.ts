import { connect } from "node:net";
import { PassThrough } from "node:stream";
import { describe, expect, test } from "vitest";
import { compose } from "../../packages/core/src/compose/compose.ts";
import { ToolError } from "../../packages/core/src/errors/index.ts";
import { RawJson } from "../../packages/core/src/json/raw.ts";
import type { Server } from "../../packages/core/src/mcp/server.ts";
import type { ToolResult } from "../../packages/core/src/mcp/types.ts";
import { text } from "../../packages/core/src/provider/content.ts";
import { type Middleware, withMiddleware } from "../../packages/core/src/provider/middleware.ts";
import { serveStream, listenTcp } from "../../packages/server/src/listen/tcp.ts";
import { createRegistry, type Registry } from "../../packages/server/src/registry/registry.ts";
import { createServer, type ServerOptions } from "../../packages/server/src/wire/server.ts";
import { type Answer, call, converse, converseInitialized, initialize, request } from "./line-client.ts";

/** The dialect of the seed document. */
const seed: ServerOptions = { unknownTool: "is_error", malformedJson: -32600 };
const info = { name: "clawft", version: "0.1.0" };

function createTools(): Registry {
  const registry = createRegistry({ onError: () => {} });
  const input = { type: "object", properties: { text: { type: "string" } } };
  registry.register("echo", { description: "Echoes", input }, (args) => String(args["text"]));
  registry.register("fail", { description: "Fails" }, () => {
    throw new ToolError("it broke");
  });
  return registry;
}

function serverOf(middlewares: readonly Middleware[] = [], options = seed): Server {
  const composite = compose({ test: createTools() }, { bareNames: "first_match" });
  return createServer(withMiddleware(composite, middlewares), info, options);
}

/** What the protocol says, where the seed says otherwise. */
const standard = (): Server => serverOf([], {});

function namesIn(answer: Answer | undefined): readonly string[] {
  const tools = (answer?.result?.["tools"] ?? []) as readonly { readonly name: string }[];
  return tools.map(({ name }) => name);
}

describe("seed 003, the server", () => {
  test("initialize_handshake: the answer says revision, capabilities and who we are", async () => {
    const answers = await converse(serverOf(), [initialize]);
    expect(answers).toEqual([
      {
        jsonrpc: "2.0",
        id: "init",
        result: {
          protocolVersion: "2025-11-25",
          capabilities: { tools: { listChanged: true }, logging: {} },
          serverInfo: info,
        },
      },
    ]);
  });

  test.each([
    ["not_initialized_rejection", serverOf],
    ["not_initialized_rejection, which is the default too", standard],
  ])("%s: requests before the handshake are refused with -32002", async (_, create) => {
    const answers = await converse(create(), [request(1, "tools/list"), call(2, "test__echo")]);
    expect(answers).toMatchObject([
      { id: 1, error: { code: -32002 } },
      { id: 2, error: { code: -32002 } },
    ]);
  });

  test("tools_list_returns_tools: after the handshake every tool is listed under its qualified name", async () => {
    const [answer] = await converseInitialized(serverOf(), [request(1, "tools/list")]);
    expect(namesIn(answer)).toEqual(["test__echo", "test__fail"]);
    expect(answer?.result?.["tools"]).toMatchObject([{ description: "Echoes" }, { description: "Fails" }]);
  });

  test("tools_call_routes_correctly: a call reaches its tool and brings back its content", async () => {
    const [answer] = await converseInitialized(serverOf(), [call(1, "test__echo", { text: "hi" })]);
    expect(answer).toEqual({ jsonrpc: "2.0", id: 1, result: { content: [text("hi")] } });
  });

  test("tools_call_routes_correctly: a tool that fails is a result with isError, not an error", async () => {
    const [answer] = await converseInitialized(serverOf(), [call(1, "test__fail")]);
    expect(answer?.result).toEqual({ content: [text("it broke")], isError: true });
  });

  test("tools_call_not_found: a missing tool is a result with isError", async () => {
    const [answer] = await converseInitialized(serverOf(), [call(1, "test__missing")]);
    expect(answer?.result).toEqual({ content: [text("Tool not found: test__missing")], isError: true });
  });

  test("tools_call_not_found, by default: a missing tool is an error -32602", async () => {
    const [answer] = await converseInitialized(standard(), [call(1, "test__missing")]);
    expect(answer?.error).toEqual({ code: -32602, message: "Unknown tool: test__missing" });
  });

  test.each([
    ["unknown_method_returns_error", serverOf],
    ["unknown_method_returns_error, which is the default too", standard],
  ])("%s: a method nobody knows is refused with -32601", async (_, create) => {
    const [answer] = await converseInitialized(create(), [request(1, "tools/destroy")]);
    expect(answer?.error).toEqual({ code: -32601, message: "Method not found: tools/destroy" });
  });

  test("notification_produces_no_response: known or not, nothing comes out", async () => {
    const answers = await converseInitialized(serverOf(), [
      { jsonrpc: "2.0", method: "notifications/roots/list_changed" },
      { jsonrpc: "2.0", method: "notifications/nobody/knows" },
      { jsonrpc: "2.0", method: "tools/call", params: { name: "test__missing" } },
      request(1, "ping"),
    ]);
    expect(answers).toEqual([{ jsonrpc: "2.0", id: 1, result: {} }]);
  });

  test("malformed_json_returns_parse_error: -32600, and the next line is served", async () => {
    const answers = await converseInitialized(serverOf(), ["{not json", request(1, "ping")]);
    expect(answers).toMatchObject([{ error: { code: -32600 } }, { id: 1, result: {} }]);
  });

  test("malformed_json_returns_parse_error, by default: -32700, and the next line is served", async () => {
    const answers = await converseInitialized(standard(), ["{not json", request(1, "ping")]);
    expect(answers).toMatchObject([{ error: { code: -32700 } }, { id: 1, result: {} }]);
  });

  test("empty_lines_are_skipped: lines of white space are nothing at all", async () => {
    const answers = await converseInitialized(serverOf(), ["", "   ", "\t", "\r", request(1, "ping")]);
    expect(answers).toEqual([{ jsonrpc: "2.0", id: 1, result: {} }]);
  });

  test("middleware_filter_tools_applied: what the hook leaves out is not listed", async () => {
    const server = serverOf([{ filterTools: (tools) => tools.filter(({ name }) => name !== "test__fail") }]);
    const [answer] = await converseInitialized(server, [request(1, "tools/list")]);
    expect(namesIn(answer)).toEqual(["test__echo"]);
  });

  test("middleware_filter_tools_applied: what is not listed cannot be called, under either spelling", async () => {
    const server = serverOf([{ filterTools: (tools) => tools.filter(({ name }) => name !== "test__fail") }]);
    const answers = await converseInitialized(server, [call(1, "test__fail"), call(2, "fail")]);
    expect(answers.map(({ result }) => result)).toEqual([
      { content: [text("Tool not found: test__fail")], isError: true },
      { content: [text("Tool not found: fail")], isError: true },
    ]);
  });

  test("middleware_before_call_can_reject: the tool does not run, the model reads why", async () => {
    const refuse: Middleware = {
      beforeCall: ({ name }) => {
        throw new ToolError(`no ${name} today`);
      },
    };
    const [answer] = await converseInitialized(serverOf([refuse]), [call(1, "test__echo", { text: "hi" })]);
    expect(answer?.result).toEqual({ content: [text("no test__echo today")], isError: true });
  });

  test("middleware_after_call_applied: the hook's result is what the client gets", async () => {
    const shout: Middleware = {
      afterCall: (_, end) => {
        if (end.kind !== "complete") return;
        const { content } = end.result.value as ToolResult;
        return { kind: "complete", result: RawJson.fromValue({ content: [...content, text("(audited)")] }) };
      },
    };
    const [answer] = await converseInitialized(serverOf([shout]), [call(1, "test__echo", { text: "hi" })]);
    expect(answer?.result).toEqual({ content: [text("hi"), text("(audited)")] });
  });

  test("full_session_flow: handshake, list, call, an unknown method, each answered once", async () => {
    const answers = await converse(serverOf(), [
      initialize,
      { jsonrpc: "2.0", method: "notifications/initialized" },
      request(2, "tools/list"),
      call(3, "test__echo", { text: "flow" }),
      request(4, "no/such"),
    ]);
    const byId = new Map(answers.map((answer) => [answer.id, answer]));
    expect(answers).toHaveLength(4);
    expect(byId.get("init")?.result).toMatchObject({ serverInfo: info });
    expect(namesIn(byId.get(2))).toEqual(["test__echo", "test__fail"]);
    expect(byId.get(3)?.result).toEqual({ content: [text("flow")] });
    expect(byId.get(4)?.error).toMatchObject({ code: -32601 });
  });
});

describe("seed 003, the streams", () => {
  test("any pair of byte streams is served until its input ends", async () => {
    const input = new PassThrough();
    const output = new PassThrough();
    const served = serveStream(serverOf(), input, output);
    input.end();
    await expect(served).resolves.toBeUndefined();
    expect(output.writableFinished).toBe(true);
  });

  test("the same server is driven by TCP", async () => {
    await using listener = await listenTcp(serverOf(), { port: 0 });
    const socket = connect(listener.port, listener.host);
    socket.end(`${JSON.stringify(initialize)}\n`);
    let received = "";
    for await (const chunk of socket) received += String(chunk);
    expect(JSON.parse(received)).toMatchObject({ id: "init", result: { serverInfo: info } });
  });
});
