import { describe, expect, test } from "vitest";
import { type Conversation, talkLegacy, talkModern } from "../../../../test/support/conversation.ts";
import { toProvider } from "../../../../test/support/use-provider.ts";
import { connect } from "../../../client/src/client/connect.ts";
import { RawJson } from "../../../core/src/json/raw.ts";
import { type LegacyRevision, legacyRevisions, type Revision } from "../../../core/src/mcp/revision.ts";
import type { Server } from "../../../core/src/mcp/server.ts";
import { audio, image, resourceLink, structured, text } from "../../../core/src/provider/content.ts";
import { createVirtualClock } from "../../../junctor/src/testing/virtual-clock.ts";
import { createCompletionRegistry } from "../registry/completion.ts";
import { createPromptRegistry } from "../registry/prompts.ts";
import { createRegistry } from "../registry/registry.ts";
import { createServer } from "./server.ts";
import { createListenLimits } from "./subscriptions.ts";

const info = { name: "test-server", version: "1" };
const revisions: readonly Revision[] = [...legacyRevisions, "2026-07-28"];

interface Result {
  readonly content: readonly { readonly type: string; readonly text?: string }[];
  readonly structuredContent?: unknown;
}

function createResultServer(): Server {
  const prompts = createPromptRegistry();
  const registry = createRegistry({ prompts });
  const numbers = { type: "array", items: { type: "number" } } as const;
  registry.register("object", { output: { type: "object" } }, () => ({ a: 1 }));
  registry.register("array", { output: numbers }, () => [1, 2]);
  registry.register("object-of-any", { output: {} }, () => ({ a: 1 }));
  registry.register("loose-number", {}, () => structured(7));
  registry.register("loose-null", {}, () => structured(null));
  registry.register("blocks", {}, () => [
    text("a"),
    image("AA==", "image/png"),
    audio("AAAA", "audio/wav"),
    resourceLink({ uri: "x:y", name: "link", title: "The link", description: "to somewhere" }),
  ]);
  prompts.register("p", {}, () => [
    { role: "user", content: audio("AAAA", "audio/wav") },
    { role: "user", content: resourceLink({ uri: "x:y", name: "link" }) },
  ]);
  return createServer(registry, info);
}

function talkIn(revision: Revision, server: Server): Promise<Conversation> | Conversation {
  return revision === "2026-07-28" ? talkModern(server) : talkLegacy(server, revision);
}

describe("structured content", () => {
  const has = (revision: Revision): boolean => revision >= "2025-06-18";
  const isWrapped = (revision: Revision): boolean => has(revision) && revision < "2026-07-28";

  test.each(
    revisions.flatMap((revision) =>
      [
        { tool: "object", value: { a: 1 }, wraps: false },
        { tool: "array", value: [1, 2], wraps: true },
        { tool: "object-of-any", value: { a: 1 }, wraps: true },
        { tool: "loose-number", value: 7, wraps: true },
        { tool: "loose-null", value: null, wraps: true },
      ].map((row) => ({ revision, ...row })),
    ),
  )("of $tool in $revision fits the schema that was listed", async ({ revision, tool, value, wraps }) => {
    await using client = await talkIn(revision, createResultServer());
    const result = await client.result<Result>("tools/call", { name: tool });
    const expected = wraps && isWrapped(revision) ? { result: value } : value;
    expect(result.structuredContent).toEqual(has(revision) ? expected : undefined);
    expect(result.content).toEqual([{ type: "text", text: JSON.stringify(value) }]);
  });
});

describe("content", () => {
  test.each([
    ["2024-11-05", ["text", "image", "text", "text"]],
    ["2025-03-26", ["text", "image", "audio", "text"]],
    ["2025-06-18", ["text", "image", "audio", "resource_link"]],
    ["2025-11-25", ["text", "image", "audio", "resource_link"]],
    ["2026-07-28", ["text", "image", "audio", "resource_link"]],
  ] as const)("of types %s does not know becomes text", async (revision, types) => {
    await using client = await talkIn(revision, createResultServer());
    const { content } = await client.result<Result>("tools/call", { name: "blocks" });
    expect(content.map(({ type }) => type)).toEqual(types);
  });

  test("that became text says what was there", async () => {
    await using client = await talkLegacy(createResultServer(), "2024-11-05");
    const { content } = await client.result<Result>("tools/call", { name: "blocks" });
    expect(content.slice(2).map(({ text }) => text)).toEqual([
      "[audio, audio/wav, 4 base64 characters]",
      "[The link](x:y): to somewhere",
    ]);
  });

  test.each([
    ["2024-11-05", ["text", "text"]],
    ["2025-03-26", ["audio", "text"]],
    ["2025-06-18", ["audio", "resource_link"]],
  ] as const)("of prompts is projected to %s too", async (revision, types) => {
    await using client = await talkLegacy(createResultServer(), revision);
    const { messages } = await client.result<{ messages: { content: { type: string } }[] }>("prompts/get", {
      name: "p",
    });
    expect(messages.map(({ content }) => content.type)).toEqual(types);
  });
});

describe("a result that came as bytes", () => {
  const spelled =
    '{ "resultType":"complete","ttlMs":5, "content":[ ],"cacheScope":"public","x":[1.0,-0,12345678901234567890] }';

  function createForwarding(result: string): Server {
    const bytes = RawJson.parse(Buffer.from(result));
    return createServer(
      toProvider([], async () => ({ kind: "complete", result: bytes })),
      info,
    );
  }

  test.each(["2025-06-18", "2025-11-25"] satisfies LegacyRevision[])(
    "leaves for %s without what only modern results have, and no other byte changed",
    async (revision) => {
      const client = await talkLegacy(createForwarding(spelled), revision);
      await client.request("tools/call", { name: "x" }, 99);
      expect(client.wire.lines.at(-1)).toBe(
        '{"jsonrpc":"2.0","id":99,"result":{ "content":[ ],"x":[1.0,-0,12345678901234567890] }}',
      );
    },
  );

  test("leaves for a modern client with who made it, and no other byte changed", async () => {
    const client = talkModern(createForwarding('{ "content":[ ],"x":1.0 }'));
    await client.request("tools/call", { name: "x" }, 99);
    expect(client.wire.lines.at(-1)).toBe(
      '{"jsonrpc":"2.0","id":99,"result":{"resultType":"complete",' +
        '"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"test-server","version":"1"}},"content":[ ],"x":1.0 }}',
    );
  });

  test("keeps its own _meta and its own word on what it is", async () => {
    const own = '{"_meta":{"a":1},"resultType":"complete","content":[]}';
    await using client = talkModern(createForwarding(own));
    await expect(client.result("tools/call", { name: "x" })).resolves.toEqual({
      resultType: "complete",
      content: [],
      _meta: { a: 1, "io.modelcontextprotocol/serverInfo": info },
    });
  });
});

describe("completions", () => {
  const completion = createCompletionRegistry();
  completion.registerPrompt("guide", "city", () => ["Bern"]);
  const registry = createRegistry({ completion });

  test("are 600 a minute for each caller, and those of all servers with the same limits together", async () => {
    const clock = createVirtualClock();
    const listenLimits = createListenLimits(undefined, undefined, clock);
    const servers = [1, 2].map(() => createServer(registry, info, { clock, listenLimits }));
    const [first, second] = await Promise.all(
      servers.map((server) => connect({ server, caller: "ada" }, { clock })),
    );
    await using ada = first!;
    await using elsewhere = second!;
    await using bob = await connect({ server: servers[0]!, caller: "bob" }, { clock });
    const complete = async (client: typeof ada): Promise<unknown> => {
      const ref = { type: "ref/prompt", name: "guide" } as const;
      return (await client.complete(ref, { name: "city", value: "" })).values;
    };
    for (let count = 0; count < 300; count++) await Promise.all([complete(ada), complete(elsewhere)]);
    const refused = {
      message: "You asked for too many completions; at most 600 a minute. Try again in 1 s",
      data: { code: "rpc.too_many", delivery: "not_sent", retryAfterMs: 100 },
    };
    await expect(complete(ada)).rejects.toMatchObject(refused);
    await expect(complete(elsewhere)).rejects.toMatchObject(refused);
    expect(await complete(bob)).toEqual(["Bern"]);
    await clock.advance(100);
    expect(await complete(ada)).toEqual(["Bern"]);
    await expect(complete(ada)).rejects.toMatchObject(refused);
  });

  test("need a rate that can be", () => {
    const perCaller = { completionsPerMinute: 0 };
    expect(() => createServer(registry, info, { perCaller })).toThrow(
      "completionsPerMinute must be 1 or more, not 0",
    );
  });
});
