import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { compose } from "../../packages/core/src/compose/compose.ts";
import { ToolError } from "../../packages/core/src/errors/index.ts";
import { listenHttp } from "../../packages/server/src/http/listen-http.ts";
import type { HttpListener } from "../../packages/server/src/http/node.ts";
import { createRegistry } from "../../packages/server/src/registry/registry.ts";
import { createServer } from "../../packages/server/src/wire/server.ts";
import { both, connectLegacy, type HttpWire, legacyCall, postOf } from "../support/http-wire.ts";
import { exchange } from "../support/raw-http.ts";

/** The dialect of the seed document: `namespace.method`, nothing without a dot, every result in one piece. */
function createSeedServer(): ReturnType<typeof createServer> {
  const claudecode = createRegistry();
  const query = {
    type: "object",
    properties: { session_name: { type: "string" }, query: { type: "string" } },
  };
  claudecode.register("chat", { input: query }, async function* ({ session_name }) {
    if (session_name !== "my-session") throw new ToolError(`Session '${String(session_name)}' not found`);
    yield "Hello! ";
    yield { type: "toolUse", name: "grep" };
    yield "How can I ";
    yield "help?";
  });
  const health = createRegistry();
  health.register("check", {}, () => "healthy");
  health.register("chat", {}, () => "not the chat you meant");
  const all = compose({ claudecode, health }, { separator: ".", bareNames: "refuse" });
  return createServer(all, { name: "seed", version: "1.0.0" });
}

describe("seed 000: tools/call with buffered results", () => {
  let listener: HttpListener;
  let wire: HttpWire;

  beforeAll(async () => {
    listener = await listenHttp(createSeedServer(), { port: 0, responses: "json" });
    wire = await connectLegacy(listener.port);
  });
  afterAll(async () => {
    wire[Symbol.dispose]();
    await listener[Symbol.asyncDispose]();
  });

  test("parses namespace.method tool names", async () => {
    const list = await wire.ask({ jsonrpc: "2.0", id: 2, method: "tools/list" });
    const { tools } = list.result as { readonly tools: readonly { readonly name: string }[] };
    expect(tools.map(({ name }) => name)).toEqual(["claudecode.chat", "health.check", "health.chat"]);
    expect(await wire.ask(legacyCall(3, "health.check"))).toMatchObject({
      result: { content: [{ type: "text", text: "healthy" }] },
    });
  });

  test("routes to the provider the namespace names", async () => {
    expect(await wire.ask(legacyCall(3, "health.chat"))).toMatchObject({
      result: { content: [{ text: "not the chat you meant" }] },
    });
    const args = { session_name: "my-session", query: "Hello, world!" };
    expect(await wire.ask(legacyCall(3, "claudecode.chat", args))).toMatchObject({
      result: { content: [{ text: "Hello! How can I help?" }] },
    });
  });

  test("buffers a streaming response into one, also for a client that would take a stream", async () => {
    const args = { session_name: "my-session", query: "Hello, world!" };
    const call = legacyCall(3, "claudecode.chat", args, { progressToken: "t" });
    const reply = await (await wire.post(call, { accept: both })).complete;
    expect(reply.headers["content-type"]).toBe("application/json");
    expect(reply.json).toEqual({
      jsonrpc: "2.0",
      id: 3,
      result: { content: [{ type: "text", text: "Hello! How can I help?" }] },
    });
  });

  test("returns a tool's error as a result with isError", async () => {
    const answer = await wire.ask(legacyCall(3, "claudecode.chat", { session_name: "foo", query: "?" }));
    expect(answer.error).toBeUndefined();
    expect(answer.result).toEqual({
      content: [{ type: "text", text: "Session 'foo' not found" }],
      isError: true,
    });
  });

  test.each([
    ["a name without a dot", "no-dot-here", "Invalid tool name format: 'no-dot-here'"],
    ["a name of nobody", "nobody.chat", "Unknown tool: nobody.chat"],
    ["a method of nobody", "health.nothing", "Unknown tool: health.nothing"],
  ])("returns a protocol error for %s", async (_, name, message) => {
    const answer = await wire.ask(legacyCall(3, name));
    expect(answer).toEqual({ jsonrpc: "2.0", id: 3, error: { code: -32602, message } });
  });

  test("requires the ready state: a call before initialize is refused", async () => {
    const reply = await exchange(listener.port, postOf(legacyCall(3, "health.check")));
    expect(reply.status).toBe(400);
    expect(reply.json).toMatchObject({ id: 3, error: { code: -32002 } });
  });
});
