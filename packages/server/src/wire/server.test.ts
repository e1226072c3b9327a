import { describe, expect, test, vi } from "vitest";
import {
  type Conversation,
  envelope,
  handshake,
  talk,
  talkLegacy,
  talkModern,
} from "../../../../test/support/conversation.ts";
import { toProvider } from "../../../../test/support/use-provider.ts";
import { ToolError } from "../../../core/src/errors/index.ts";
import { legacyRevisions, newestLegacyRevision } from "../../../core/src/mcp/revision.ts";
import type { CallContext } from "../../../core/src/provider/context.ts";
import { withMiddleware } from "../../../core/src/provider/middleware.ts";
import { createCompletionRegistry } from "../registry/completion.ts";
import { createPromptRegistry } from "../registry/prompts.ts";
import { createRegistry, type Registry } from "../registry/registry.ts";
import { createResourceRegistry } from "../registry/resources.ts";
import { createServer, type ServerOptions } from "./server.ts";

const info = { name: "test-server", version: "1.2.3" };

function createEcho(): Registry {
  const registry = createRegistry();
  registry.register("echo", { input: { type: "object" } }, (args) => JSON.stringify(args));
  return registry;
}

function createEchoServer(options: ServerOptions = {}): ReturnType<typeof createServer> {
  return createServer(createEcho(), info, options);
}

/** A pipe on which nothing has been said, for messages written by hand. */
function talkPlain(options: ServerOptions = {}): Conversation {
  return talk(createEchoServer(options), newestLegacyRevision, {}, (params) => params);
}

describe("initialize", () => {
  test.each(legacyRevisions)("agrees on %s", async (revision) => {
    await using client = talk(createEchoServer(), revision, {}, (params) => params);
    const result = await client.result("initialize", handshake(revision));
    expect(result).toEqual({
      protocolVersion: revision,
      capabilities: { tools: { listChanged: true }, logging: {} },
      serverInfo: info,
    });
    await expect(client.result("tools/list")).resolves.toMatchObject({ tools: [{ name: "echo" }] });
  });

  test.each(["1999-01-01", "2026-07-28", "v999", ""])(
    "answers %j with the newest legacy one",
    async (version) => {
      await using client = talkPlain();
      await expect(client.result("initialize", handshake(version))).resolves.toMatchObject({
        protocolVersion: "2025-11-25",
      });
    },
  );

  test.each([
    {},
    { protocolVersion: 7, capabilities: {}, clientInfo: { name: "n", version: "1" } },
    { protocolVersion: "2025-11-25", capabilities: [], clientInfo: { name: "n", version: "1" } },
    { protocolVersion: "2025-11-25", capabilities: {} },
    { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "n" } },
  ])("refuses %j with -32602 and starts no session", async (params) => {
    await using client = talkPlain();
    await expect(client.error("initialize", params)).resolves.toMatchObject({ code: -32602 });
    await expect(client.error("tools/list")).resolves.toMatchObject({ code: -32002 });
  });

  test("tells the instructions", async () => {
    const server = createServer(createEcho(), { ...info, instructions: "Be brief." });
    await using client = talk(server, "2025-11-25", {}, (params) => params);
    await expect(client.result("initialize", handshake("2025-11-25"))).resolves.toMatchObject({
      instructions: "Be brief.",
      serverInfo: info,
    });
  });

  test("starts over when it comes again", async () => {
    await using client = talkPlain();
    await client.result("initialize", handshake("2024-11-05"));
    await client.result("initialize", handshake("2025-11-25"));
    await expect(client.result("ping")).resolves.toEqual({});
  });
});

describe("before initialize", () => {
  test("requests are refused with -32002", async () => {
    await using client = talkPlain();
    await expect(client.error("tools/list")).resolves.toMatchObject({ code: -32002 });
    await expect(client.error("tools/call", { name: "echo" })).resolves.toMatchObject({ code: -32002 });
  });

  test("ping is answered", async () => {
    await using client = talkPlain();
    await expect(client.result("ping")).resolves.toEqual({});
  });

  test("a batch is refused", async () => {
    await using client = talkPlain();
    client.wire.send('[{"jsonrpc":"2.0","id":1,"method":"ping"}]');
    await expect(client.wire.take()).resolves.toMatchObject({ error: { code: -32600 } });
  });
});

describe("a batch", () => {
  test("is answered by one array in 2025-03-26", async () => {
    await using client = talk(createEchoServer(), "2025-03-26", {}, (params) => params);
    await client.result("initialize", handshake("2025-03-26"));
    client.wire.send(
      '[{"jsonrpc":"2.0","id":"a","method":"ping"},{"jsonrpc":"2.0","id":"b","method":"ping"}]',
    );
    const answers = await client.wire.take(Array.isArray);
    expect(answers).toEqual([
      { jsonrpc: "2.0", id: "a", result: {} },
      { jsonrpc: "2.0", id: "b", result: {} },
    ]);
  });

  test.each(["2024-11-05", "2025-06-18", "2025-11-25"] as const)("is refused in %s", async (revision) => {
    await using client = await talkLegacy(createEchoServer(), revision);
    client.wire.send('[{"jsonrpc":"2.0","id":"a","method":"ping"}]');
    await expect(client.wire.take()).resolves.toMatchObject({ error: { code: -32600 } });
  });
});

describe("a modern request", () => {
  test("needs no handshake", async () => {
    await using client = talkModern(createEchoServer());
    await expect(client.result("tools/call", { name: "echo", arguments: {} })).resolves.toMatchObject({
      resultType: "complete",
      content: [{ type: "text", text: "{}" }],
    });
  });

  test.each(["tools/list", "server/discover"])(
    "%s is answered with who we are and what it is",
    async (method) => {
      await using client = talkModern(createEchoServer());
      await expect(client.result(method)).resolves.toMatchObject({
        resultType: "complete",
        ttlMs: 0,
        _meta: { "io.modelcontextprotocol/serverInfo": info },
      });
    },
  );

  test("server/discover tells the modern revisions, the capabilities and the instructions", async () => {
    const server = createServer(createEcho(), { ...info, instructions: "Be brief." });
    await using client = talkModern(server);
    await expect(client.result("server/discover")).resolves.toMatchObject({
      supportedVersions: ["2026-07-28"],
      capabilities: { tools: { listChanged: true }, logging: {} },
      instructions: "Be brief.",
    });
  });

  test.each([
    "initialize",
    "ping",
    "logging/setLevel",
    "resources/subscribe",
    "nonsense",
    "toString",
    "__proto__",
  ])("for %s is an unknown method", async (method) => {
    await using client = talkModern(createEchoServer());
    await expect(client.error(method)).resolves.toMatchObject({ code: -32601 });
  });

  test("says what it can be asked for itself; nothing is remembered from the one before", async () => {
    const registry = createRegistry();
    registry.register("capabilities", {}, (_, { capabilities }) => JSON.stringify(capabilities));
    await using client = talkModern(createServer(registry, info));
    const call = async (capabilities: object): Promise<unknown> => {
      const _meta = { "io.modelcontextprotocol/clientCapabilities": capabilities };
      const { content } = await client.result<{ content: { text: string }[] }>("tools/call", {
        name: "capabilities",
        _meta,
      });
      return JSON.parse(content[0]?.text ?? "");
    };
    await expect(call({ roots: {}, sampling: {} })).resolves.toEqual({ roots: {}, sampling: {} });
    await expect(call({})).resolves.toEqual({});
  });
});

describe("both eras on one pipe", () => {
  test("a client may look around with server/discover and then shake hands", async () => {
    await using client = talkPlain();
    await client.wire.request({ id: "probe", method: "server/discover", params: { _meta: envelope() } });
    await client.result("initialize", handshake("2025-11-25"));
    await expect(client.result("tools/list")).resolves.not.toHaveProperty("resultType");
  });

  test("a modern request is served as such in the middle of a session", async () => {
    await using client = talkPlain();
    await client.result("initialize", handshake("2025-11-25"));
    const modern = await client.wire.request({
      id: "m",
      method: "tools/list",
      params: { _meta: envelope() },
    });
    expect(modern.result).toMatchObject({ resultType: "complete", cacheScope: "private" });
    await expect(client.result("tools/list")).resolves.not.toHaveProperty("cacheScope");
  });

  test("a server of modern clients alone refuses the handshake and says what it serves", async () => {
    await using client = talkPlain({ serves: "modern" });
    await expect(client.error("initialize", handshake("2025-11-25"))).resolves.toMatchObject({
      code: -32022,
      data: { supported: ["2026-07-28"] },
    });
  });
});

describe("what the provider lacks", () => {
  test.each([
    "resources/list",
    "resources/read",
    "prompts/list",
    "completion/complete",
    "resources/subscribe",
  ])("%s is an unknown method", async (method) => {
    await using client = await talkLegacy(createEchoServer(), "2025-11-25");
    await expect(client.error(method)).resolves.toMatchObject({ code: -32601 });
  });

  test("and what it has is declared", async () => {
    const registry = createRegistry({
      resources: createResourceRegistry(),
      prompts: createPromptRegistry(),
      completion: createCompletionRegistry(),
    });
    await using client = talkModern(createServer(registry, info));
    await expect(client.result("server/discover")).resolves.toMatchObject({
      capabilities: {
        tools: { listChanged: true },
        resources: { listChanged: true, subscribe: true },
        prompts: { listChanged: true },
        completions: {},
        logging: {},
      },
    });
  });
});

describe("a call that fails", () => {
  const failing = (error: unknown, options: ServerOptions = {}): ReturnType<typeof createServer> =>
    createServer(
      toProvider([], () => Promise.reject(error)),
      info,
      options,
    );

  test("by an error of ours to come is told without detail, and reported with everything", async () => {
    const onError = vi.fn<(error: unknown, method: string) => void>();
    const error = new Error("secret");
    await using client = talkModern(failing(error, { onError }));
    await expect(client.error("tools/call", { name: "x" })).resolves.toEqual({
      code: -32603,
      message: "Internal error",
    });
    expect(onError).toHaveBeenCalledExactlyOnceWith(error, "tools/call");
  });

  test("by a ToolError is told to the model", async () => {
    await using client = talkModern(failing(new ToolError("Try another city.")));
    await expect(client.result("tools/call", { name: "x" })).resolves.toMatchObject({
      isError: true,
      content: [{ type: "text", text: "Try another city." }],
    });
  });

  test.each([
    ["invalid_params", { code: -32602, message: "Unknown tool: nope" }],
    ["method_not_found", { code: -32601, message: "Tool not found: nope" }],
  ] as const)("by an unknown tool is answered as the dialect %s says", async (unknownTool, error) => {
    await using client = talkModern(createEchoServer({ unknownTool }));
    await expect(client.error("tools/call", { name: "nope" })).resolves.toEqual(error);
  });

  test("by an unknown tool may be told to the model", async () => {
    await using client = talkModern(createEchoServer({ unknownTool: "is_error" }));
    await expect(client.result("tools/call", { name: "nope" })).resolves.toMatchObject({ isError: true });
  });

  test.each([{}, { name: 7 }, { name: "echo", arguments: [] }, { name: "echo", arguments: null }])(
    "by params like %j is answered -32602",
    async (params) => {
      await using client = talkModern(createEchoServer());
      await expect(client.error("tools/call", params)).resolves.toMatchObject({ code: -32602 });
    },
  );

  test.each(["2025-11-25", "2026-07-28"] as const)(
    "by a result that JSON cannot hold is answered -32603 in %s",
    async (revision) => {
      const onError = vi.fn<(error: unknown, method: string) => void>();
      const registry = createRegistry();
      registry.register("bad", {}, () => ({ content: [], structuredContent: { n: 1n } }));
      const server = createServer(registry, info, { onError });
      await using client =
        revision === "2026-07-28" ? talkModern(server) : await talkLegacy(server, revision);
      await expect(client.error("tools/call", { name: "bad" })).resolves.toEqual({
        code: -32603,
        message: "Internal error",
      });
      expect(onError).toHaveBeenCalledOnce();
    },
  );

  test.each([
    [-32700, {}],
    [-32600, { malformedJson: -32600 as const }],
  ])("to be JSON is answered %i", async (code, options) => {
    await using client = talkModern(createEchoServer(options));
    client.wire.send("{");
    await expect(client.wire.take()).resolves.toMatchObject({ error: { code } });
  });
});

test("a slow call does not hold up the next message", async () => {
  const registry = createEcho();
  let finish: (value: string) => void = () => {};
  registry.register("slow", {}, () => new Promise<string>((resolve) => (finish = resolve)));
  await using client = talkModern(createServer(registry, info));
  const slow = client.result("tools/call", { name: "slow" });
  await client.result("tools/call", { name: "echo" });
  finish("done");
  await expect(slow).resolves.toMatchObject({ content: [{ text: "done" }] });
});

test("resources that are not there are -32002 to legacy clients and -32602 to modern ones", async () => {
  const server = createServer(createRegistry({ resources: createResourceRegistry() }), info);
  await using legacy = await talkLegacy(server, "2025-11-25");
  await using modern = talkModern(server);
  const params = { uri: "x:y" };
  await expect(legacy.error("resources/read", params)).resolves.toMatchObject({ code: -32002, data: params });
  await expect(modern.error("resources/read", params)).resolves.toMatchObject({ code: -32602, data: params });
});

test("tools, prompts and resources get to know the same of the caller", async () => {
  const seen: unknown[] = [];
  const look = async (context: CallContext): Promise<string> => {
    const { signal, caller, revision, capabilities, clientInfo, meta } = context;
    seen.push([signal.aborted, caller, revision, capabilities, clientInfo, meta?.at("a")?.value]);
    await context.emit({ kind: "log", level: "error", data: "said" });
    return "seen";
  };
  const resources = createResourceRegistry();
  const prompts = createPromptRegistry();
  const registry = createRegistry({ resources, prompts });
  registry.register("t", {}, (_, context) => look(context));
  prompts.register("p", {}, (_, context) => look(context));
  resources.register("x:y", { name: "r" }, (context) => look(context));
  const clientInfo = { name: "n", version: "1" };
  const meta = {
    "io.modelcontextprotocol/clientInfo": clientInfo,
    "io.modelcontextprotocol/logLevel": "error",
    a: 1,
  };
  const server = createServer(withMiddleware(registry, [{}]), info);
  await using client = talkModern(server, { caller: "ada", capabilities: { roots: {} }, meta });
  await client.result("tools/call", { name: "t" });
  await client.result("prompts/get", { name: "p" });
  await client.result("resources/read", { uri: "x:y" });
  const expected = [false, "ada", "2026-07-28", { roots: {} }, clientInfo, 1];
  expect(seen).toEqual([expected, expected, expected]);
  expect(client.unasked()).toHaveLength(3);
});
