import { fileURLToPath } from "node:url";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { describe, expect, test } from "vitest";
import { ToolError } from "../../packages/core/src/errors/index.ts";
import { createRegistry, type Registry } from "../../packages/server/src/registry/registry.ts";
import { createServer, type ServerOptions } from "../../packages/server/src/wire/server.ts";
import { type Answer, converseInitialized, request } from "./line-client.ts";

/** The dialect of the seed document. */
const seed: ServerOptions = { unknownTool: "method_not_found" };
const info = { name: "nvim", version: "0.1.0" };

const listing = request("req-2", "tools/list");
const calling = (args: object = {}) => request("req-3", "tools/call", { name: "toolName", arguments: args });

async function ask(registry: Registry, line: object, options = seed): Promise<Answer | undefined> {
  const [answer] = await converseInitialized(createServer(registry, info, options), [line]);
  return answer;
}

describe("seed 004, tools/list", () => {
  test("a request to an empty registry returns the empty array", async () => {
    expect(await ask(createRegistry(), listing)).toEqual({
      jsonrpc: "2.0",
      id: "req-2",
      result: { tools: [] },
    });
  });

  test("tools registered in the registry are reflected, with name, description and input schema", async () => {
    const registry = createRegistry();
    const inputSchema = { type: "object", properties: { path: { type: "string" } } };
    registry.register("openFile", { description: "Opens a file", input: inputSchema }, () => "opened");
    const answer = await ask(registry, listing);
    expect(answer?.result).toEqual({
      tools: [{ name: "openFile", description: "Opens a file", inputSchema }],
    });
  });

  test("the official client, which speaks as Claude's does, calls tools/list and receives the empty list", async () => {
    const client = new Client({ name: "claude", version: "1.0.0" });
    const server = fileURLToPath(new URL("../fixtures/empty-server.mjs", import.meta.url));
    await client.connect(new StdioClientTransport({ command: process.execPath, args: [server] }));
    try {
      expect(await client.listTools()).toEqual({ tools: [] });
      expect(client.getServerCapabilities()).toHaveProperty("tools");
    } finally {
      await client.close();
    }
  });
});

describe("seed 004, tools/call", () => {
  test("an unregistered tool name returns the error -32601 with the name", async () => {
    expect(await ask(createRegistry(), calling())).toEqual({
      jsonrpc: "2.0",
      id: "req-3",
      error: { code: -32601, message: "Tool not found: toolName" },
    });
  });

  test("an unregistered tool name returns the error -32602 by default", async () => {
    const answer = await ask(createRegistry(), calling(), {});
    expect(answer?.error).toEqual({ code: -32602, message: "Unknown tool: toolName" });
  });

  test("a tool that exists is invoked with the arguments, and its result is wrapped as content", async () => {
    const registry = createRegistry();
    const input = { type: "object", properties: { n: { type: "number" } } };
    registry.register("toolName", { input }, ({ n }) => `result ${String(n)}`);
    expect(await ask(registry, calling({ n: 7 }))).toEqual({
      jsonrpc: "2.0",
      id: "req-3",
      result: { content: [{ type: "text", text: "result 7" }] },
    });
  });

  test("a tool that fails returns its message as content with isError", async () => {
    const registry = createRegistry();
    registry.register("toolName", {}, () => {
      throw new ToolError("no such buffer");
    });
    expect((await ask(registry, calling()))?.result).toEqual({
      content: [{ type: "text", text: "no such buffer" }],
      isError: true,
    });
  });
});

describe("seed 004, the registry", () => {
  test("register takes a name, a schema and a handler, and starts empty", async () => {
    const registry = createRegistry();
    expect(registry.register("toolName", { input: { type: "object" } }, () => "result")).toBeUndefined();
    expect((await ask(createRegistry(), listing))?.result).toEqual({ tools: [] });
    expect((await ask(registry, listing))?.result).toMatchObject({ tools: [{ name: "toolName" }] });
  });
});
