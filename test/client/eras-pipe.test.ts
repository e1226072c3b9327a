import { describe, expect, test } from "vitest";
import type { Client } from "../../packages/client/src/client/client.ts";
import { connect, type ConnectOptions } from "../../packages/client/src/client/connect.ts";
import { legacyRevisions, modernRevisions } from "../../packages/core/src/mcp/revision.ts";
import { createVirtualClock } from "../../packages/junctor/src/testing/virtual-clock.ts";
import { FakePipe, type Reaction } from "../support/fake-pipe.ts";
import { legacyScript, modernScript } from "../support/fake-script.ts";
import type { Message } from "../support/raw-http.ts";

const refuse = (code: number, data?: unknown): Reaction => ({
  error: { code, message: "no", ...(data === undefined ? {} : { data }) },
});

async function meet(react: (message: Message, pipe: FakePipe) => Reaction, options: ConnectOptions = {}) {
  const pipe = new FakePipe(react);
  const client = await connect(pipe.target, options);
  return { pipe, client, mode: (await client.agreement()).mode };
}

async function useOnce(client: Client): Promise<void> {
  const { content } = await client.callTool("echo", { message: "hi" });
  expect(content).toEqual([{ type: "text", text: '{"message":"hi"}' }]);
  await client[Symbol.asyncDispose]();
}

describe("a pipe is probed with server/discover", () => {
  test("and a valid result settles the modern era", async () => {
    const { pipe, client, mode } = await meet(modernScript());
    expect(mode).toEqual({ kind: "modern", revision: "2026-07-28" });
    const [probe] = pipe.received;
    expect(probe).toMatchObject({ method: "server/discover", id: expect.any(String) as unknown });
    expect(probe?.params?.["_meta"]).toMatchObject({
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientCapabilities": {},
      "io.modelcontextprotocol/clientInfo": { name: "junctor" },
    });
    await useOnce(client);
    expect(pipe.methods).toEqual(["server/discover", "tools/list", "tools/call"]);
  });

  test.each([-32601, -32602, -32600, -32000, -32603, 0])("and the error %i means legacy", async (code) => {
    const { pipe, client, mode } = await meet(legacyScript({ refusal: refuse(code) }));
    expect(mode).toEqual({ kind: "legacy", revision: "2025-11-25" });
    await useOnce(client);
    expect(pipe.methods).toEqual([
      "server/discover",
      "initialize",
      "notifications/initialized",
      "tools/list",
      "tools/call",
    ]);
  });

  test.each<[string, object]>([
    ["an empty result", {}],
    ["a result without capabilities", { supportedVersions: ["2026-07-28"] }],
    ["a result of another kind", { tools: [] }],
  ])("and %s means legacy", async (_, result) => {
    const { client, mode } = await meet(legacyScript({ refusal: { result } }));
    expect(mode.kind).toBe("legacy");
    await useOnce(client);
  });

  test("and a result that is not an object means legacy", async () => {
    const { mode } = await meet((message, pipe) => {
      if (message.method !== "server/discover") return legacyScript()(message);
      pipe.send({ jsonrpc: "2.0", id: message.id, result: null });
      return undefined;
    });
    expect(mode.kind).toBe("legacy");
  });

  test("and lines that are not JSON are passed over", async () => {
    const { pipe, client, mode } = await meet((message, fake) => {
      if (message.id !== undefined)
        fake.send("Listening on stdio!", "{oops", "[]", '"text"', '{"jsonrpc":"2.0"}');
      return legacyScript()(message);
    });
    expect(mode.kind).toBe("legacy");
    await useOnce(client);
    // Nothing is said about them either: the server did not ask.
    expect(pipe.methods).not.toContain(undefined);
  });

  test("and silence means legacy; nothing but initialize follows the probe, and a late reply is dropped", async () => {
    const clock = createVirtualClock();
    const pipe = new FakePipe(
      legacyScript({ first: ({ method }) => (method === "server/discover" ? "silence" : undefined) }),
    );
    const connecting = connect(pipe.target, { clock, probeTimeoutMs: 3000 });
    const probe = await pipe.heard("server/discover");
    await clock.advance(3000);
    const client = await connecting;
    pipe.send({ jsonrpc: "2.0", id: probe.id, ...refuse(-32601) });
    expect(pipe.methods).toEqual(["server/discover", "initialize", "notifications/initialized"]);
    await useOnce(client);
    expect(clock.sleeping).toBe(0);
  });

  test("and a modern server that was too slow for it is still found to be one", async () => {
    const clock = createVirtualClock();
    let probes = 0;
    const modern = modernScript();
    const pipe = new FakePipe((message) => {
      if (message.method === "initialize") return refuse(-32602);
      return message.method === "server/discover" && probes++ === 0 ? undefined : modern(message);
    });
    const connecting = connect(pipe.target, { clock });
    await pipe.heard("server/discover");
    await clock.advance(3000);
    const client = await connecting;
    expect((await client.agreement()).mode.kind).toBe("modern");
    await useOnce(client);
  });

  test("and a slow modern server that names its revisions when it refuses initialize is believed", async () => {
    const clock = createVirtualClock();
    let probes = 0;
    const pipe = new FakePipe((message) => {
      if (message.method === "initialize") return refuse(-32022, { supported: ["2026-07-28"] });
      return message.method === "server/discover" && probes++ === 0 ? undefined : modernScript()(message);
    });
    const connecting = connect(pipe.target, { clock });
    await pipe.heard("server/discover");
    await clock.advance(3000);
    expect((await (await connecting).agreement()).mode.kind).toBe("modern");
  });
});

describe("a server that refuses the revision with -32022", () => {
  test("is asked once more when the revision is in its list", async () => {
    let probes = 0;
    const { pipe, mode } = await meet((message) =>
      message.method === "server/discover" && probes++ === 0
        ? refuse(-32022, { supported: ["2026-07-28"] })
        : modernScript()(message),
    );
    expect(mode.kind).toBe("modern");
    expect(pipe.methods).toEqual(["server/discover", "server/discover"]);
  });

  test("and refuses again is an error, and never initialized", async () => {
    const pipe = new FakePipe(() => refuse(-32022, { supported: ["2026-07-28"] }));
    await expect(connect(pipe.target)).rejects.toMatchObject({ code: "rpc.other", rpcCode: -32022 });
    expect(pipe.methods).toEqual(["server/discover", "server/discover"]);
  });

  test("and lists only revisions nobody knows is an error, and never initialized", async () => {
    const pipe = new FakePipe(() => refuse(-32022, { supported: ["2031-01-01"] }));
    await expect(connect(pipe.target)).rejects.toMatchObject({ rpcCode: -32022 });
    expect(pipe.methods).toEqual(["server/discover"]);
  });

  test.each<[string, unknown]>([
    ["lists only legacy revisions", { supported: ["2025-06-18"] }],
    ["lists nothing", { supported: [] }],
    ["has no list", undefined],
  ])("and %s is taken for a legacy one", async (_, data) => {
    const { mode } = await meet(legacyScript({ refusal: refuse(-32022, data) }));
    expect(mode.kind).toBe("legacy");
  });

  test("a result that lists revisions but not ours leads to initialize if a legacy one is among them", async () => {
    const refusal = { result: { supportedVersions: ["2025-11-25", "2031-01-01"], capabilities: {} } };
    expect((await meet(legacyScript({ refusal }))).mode.kind).toBe("legacy");
    const disjoint = { result: { supportedVersions: ["2031-01-01"], capabilities: {} } };
    await expect(meet(legacyScript({ refusal: disjoint }))).rejects.toMatchObject({
      code: "rpc.unsupported_version",
    });
  });
});

describe("pinning", () => {
  test.each([...legacyRevisions, ...modernRevisions])("%s speaks that and nothing else", async (revision) => {
    const isModern = revision === "2026-07-28";
    const { pipe, client, mode } = await meet(isModern ? modernScript() : legacyScript(), { revision });
    expect(mode.revision).toBe(revision);
    expect(pipe.methods[0]).toBe(isModern ? "server/discover" : "initialize");
    if (!isModern) expect(pipe.received[0]?.params).toMatchObject({ protocolVersion: revision });
    await useOnce(client);
  });

  test("a modern revision fails on a legacy server without a handshake", async () => {
    const pipe = new FakePipe(legacyScript());
    await expect(connect(pipe.target, { revision: "2026-07-28" })).rejects.toMatchObject({ rpcCode: -32601 });
    const vague = new FakePipe(legacyScript({ refusal: { result: {} } }));
    await expect(connect(vague.target, { revision: "2026-07-28" })).rejects.toThrow(
      /does not speak 2026-07-28/,
    );
    expect([...pipe.methods, ...vague.methods]).not.toContain("initialize");
  });

  test("a legacy revision fails on a server that answers with another", async () => {
    const pipe = new FakePipe(legacyScript({ revision: "2024-11-05" }));
    await expect(connect(pipe.target, { revision: "2025-06-18" })).rejects.toThrow(/2024-11-05.*2025-06-18/);
    expect(pipe.methods).toEqual(["initialize"]);
  });
});

describe("the legacy handshake", () => {
  test.each(legacyRevisions)("accepts whichever revision the server answers with: %s", async (revision) => {
    const { pipe, mode } = await meet(legacyScript({ revision }));
    expect(mode.revision).toBe(revision);
    expect(pipe.methods.filter((method) => method === "notifications/initialized")).toHaveLength(1);
  });

  test.each(["2030-01-01", 5, undefined])("is given up when the server answers with %s", async (revision) => {
    const pipe = new FakePipe((message) =>
      message.method === "initialize"
        ? { result: { protocolVersion: revision, capabilities: {} } }
        : legacyScript()(message),
    );
    await expect(connect(pipe.target)).rejects.toMatchObject({ code: "client.connect" });
    expect(pipe.methods).not.toContain("notifications/initialized");
    expect(pipe.target.writable.destroyed).toBe(true);
  });

  test("is never cancelled, however long it takes", async () => {
    const clock = createVirtualClock();
    const pipe = new FakePipe(({ method }) => (method === "initialize" ? undefined : refuse(-32601)));
    const connecting = connect(pipe.target, { clock, connectTimeoutMs: 30_000 });
    const failed = connecting.catch((error: unknown) => error);
    await pipe.heard("initialize");
    await clock.advance(31_000);
    expect(String(await failed)).toContain("no answer to initialize within 30000 ms");
    expect(pipe.methods).toEqual(["server/discover", "initialize"]);
  });
});

test("connecting can be given up, and leaves nothing open", async () => {
  const pipe = new FakePipe(() => undefined);
  const controller = new AbortController();
  const connecting = connect(pipe.target, { signal: controller.signal });
  await pipe.heard("server/discover");
  controller.abort(new Error("enough"));
  await expect(connecting).rejects.toThrow("enough");
  expect(pipe.target.writable.destroyed).toBe(true);
  expect(pipe.methods).toEqual(["server/discover"]);
});

test("what one pair of streams spoke says nothing about the next", async () => {
  expect((await meet(legacyScript())).mode.kind).toBe("legacy");
  expect((await meet(modernScript())).mode.kind).toBe("modern");
});
