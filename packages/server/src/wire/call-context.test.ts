import { describe, expect, test } from "vitest";
import { type Conversation, talkLegacy, talkModern } from "../../../../test/support/conversation.ts";
import { legacyRevisions } from "../../../core/src/mcp/revision.ts";
import type { Server } from "../../../core/src/mcp/server.ts";
import { logLevels } from "../../../core/src/mcp/types.ts";
import type { ToolHandler } from "../registry/event.ts";
import { createRegistry } from "../registry/registry.ts";
import { createServer, type ServerOptions } from "./server.ts";

const info = { name: "test-server", version: "1" };

function createToolServer(handler: ToolHandler<unknown>, options: ServerOptions = {}): Server {
  const registry = createRegistry();
  registry.register("tool", {}, handler);
  return createServer(registry, info, options);
}

interface Progress {
  readonly progressToken: unknown;
  readonly progress: number;
  readonly total?: number;
  readonly message?: string;
}

/** The progress of one call, in the order it came. */
async function progressOf(client: Conversation, token?: unknown): Promise<readonly Progress[]> {
  const _meta = token === undefined ? {} : { progressToken: token };
  await client.result("tools/call", { name: "tool", _meta });
  return client
    .unasked()
    .filter(({ method }) => method === "notifications/progress")
    .map(({ params }) => params as Progress);
}

describe("progress", () => {
  const counting = createToolServer(async (_, { progress }) => {
    await progress(1, 2, "half");
    await progress(2, 2);
  });

  test.each(["text", "", "1", 1, 0, -5])("goes to the token %j as it was sent", async (token) => {
    await using client = talkModern(counting);
    await expect(progressOf(client, token)).resolves.toEqual([
      { progressToken: token, progress: 1, total: 2, message: "half" },
      { progressToken: token, progress: 2, total: 2 },
    ]);
  });

  test.each(["12345678901234567890", '"\\u0041"'])("spells the token %s as it came", async (token) => {
    const client = await talkLegacy(counting, "2025-11-25");
    const params = `{"name":"tool","_meta":{"progressToken":${token}}}`;
    client.wire.send(`{"jsonrpc":"2.0","id":"x","method":"tools/call","params":${params}}`);
    await client.wire.take(({ id }) => id === "x");
    expect(client.wire.lines.at(-2)).toContain(`"progressToken":${token},`);
  });

  test("comes before the result", async () => {
    await using client = talkModern(counting);
    await progressOf(client, "t");
    expect(client.wire.frames.map(({ method }) => method)).toEqual([
      "notifications/progress",
      "notifications/progress",
      undefined,
    ]);
  });

  test.each([undefined, null, {}, [], true])("is not sent to the token %j", async (token) => {
    await using client = await talkLegacy(counting, "2025-11-25");
    await expect(progressOf(client, token)).resolves.toEqual([]);
  });

  test("may be sent without a token, under one of our own", async () => {
    const server = createToolServer((_, { progress }) => progress(1), { progress: "always" });
    await using client = talkModern(server);
    await expect(progressOf(client)).resolves.toMatchObject([
      { progressToken: expect.any(String) as unknown },
    ]);
  });

  test.each([
    ["steps of its own", [1, 2, 3.5]],
    ["a step back", [5, 3, 6]],
    ["standing still", [1, 1, 1]],
    ["a number too large to count on", [1e18, 1e18, 1e18]],
    ["a negative start", [-3, -3, -2]],
    ["a division by zero", [Number.NaN, Number.POSITIVE_INFINITY, 1]],
  ])("grows with every notification, whatever the tool reports: %s", async (_, steps) => {
    const server = createToolServer(async (_, { progress }) => {
      for (const step of steps) await progress(step, Number.NaN, `at ${step}`);
    });
    await using client = talkModern(server);
    const reported = await progressOf(client, "t");
    expect(reported.map(({ message }) => message)).toEqual(steps.map((step) => `at ${step}`));
    reported.slice(1).forEach(({ progress }, index) => {
      expect(progress).toBeGreaterThan(reported[index]?.progress ?? Number.NaN);
    });
  });

  test("that does not grow and has nothing to say is left out", async () => {
    const server = createToolServer(async (_, { progress }) => {
      for (const step of [1, 1, 0, 2]) await progress(step);
    });
    await using client = talkModern(server);
    const reported = await progressOf(client, "t");
    expect(reported.map(({ progress }) => progress)).toEqual([1, 2]);
  });

  test("of a stream counts its events and carries their text", async () => {
    const server = createToolServer(async function* () {
      yield "Hello";
      yield { type: "toolUse", name: "search" };
      yield " world";
    });
    await using client = talkModern(server);
    await expect(progressOf(client, "t")).resolves.toEqual([
      { progressToken: "t", progress: 1, message: "Hello" },
      { progressToken: "t", progress: 2, message: "Using tool: search" },
      { progressToken: "t", progress: 3, message: " world" },
    ]);
    expect(client.wire.frames.at(-1)?.result).toMatchObject({ content: [{ text: "Hello world" }] });
  });

  test("of a cancelled call stops at once", async () => {
    const stopped: string[] = [];
    const server = createToolServer(async function* (_, { signal }) {
      try {
        for (;;) {
          yield "tick";
          await new Promise((resolve) => setImmediate(resolve));
        }
      } finally {
        stopped.push(String(signal.aborted));
      }
    });
    await using client = talkModern(server);
    void client.request("tools/call", { name: "tool", _meta: { progressToken: "t" } }, 7);
    await client.notified("notifications/progress");
    client.notify("notifications/cancelled", { requestId: 7 });
    await expect.poll(() => stopped, { interval: 1 }).toEqual(["true"]);
    const sent = client.wire.frames.length;
    await client.result("tools/list");
    expect(client.wire.frames).toHaveLength(sent + 1);
  });
});

describe("logging", () => {
  const chatty = createToolServer(async (_, { log }) => {
    for (const level of logLevels) await log(level, { level }, level === "info" ? "named" : undefined);
  });

  async function levelsOf(client: Conversation, meta: object = {}): Promise<readonly string[]> {
    await client.result("tools/call", { name: "tool", _meta: meta });
    const logged = client.unasked().filter(({ method }) => method === "notifications/message");
    return logged.map(({ params }) => (params as { level: string }).level);
  }

  test("reaches a modern client that asked for nothing not at all", async () => {
    await using client = talkModern(chatty);
    await expect(levelsOf(client)).resolves.toEqual([]);
  });

  test.each(logLevels)("reaches a modern client from the level %s it asked for", async (level) => {
    await using client = talkModern(chatty);
    const meta = { "io.modelcontextprotocol/logLevel": level };
    await expect(levelsOf(client, meta)).resolves.toEqual(logLevels.slice(logLevels.indexOf(level)));
  });

  test("is asked for by each modern request again", async () => {
    await using client = talkModern(chatty);
    const first = await levelsOf(client, { "io.modelcontextprotocol/logLevel": "emergency" });
    expect(first).toEqual(["emergency"]);
    await expect(levelsOf(client)).resolves.toEqual(first);
  });

  test.each(legacyRevisions)("reaches a client of %s from info, until it sets a level", async (revision) => {
    await using client = await talkLegacy(chatty, revision);
    const first = await levelsOf(client);
    expect(first).toEqual(logLevels.slice(1));
    await expect(client.result("logging/setLevel", { level: "alert" })).resolves.toEqual({});
    await expect(levelsOf(client)).resolves.toEqual([...first, "alert", "emergency"]);
  });

  test("carries the data and the logger's name", async () => {
    await using client = await talkLegacy(chatty, "2025-11-25");
    await levelsOf(client);
    expect(client.unasked()[0]?.params).toEqual({ level: "info", logger: "named", data: { level: "info" } });
  });

  test.each([{ level: "loud" }, { level: 3 }, {}])("refuses the level %j with -32602", async (params) => {
    await using client = await talkLegacy(chatty, "2025-11-25");
    await expect(client.error("logging/setLevel", params)).resolves.toMatchObject({ code: -32602 });
  });

  test("of one client is not that of another", async () => {
    await using quiet = await talkLegacy(chatty, "2025-11-25");
    await using loud = await talkLegacy(chatty, "2025-11-25");
    await quiet.result("logging/setLevel", { level: "emergency" });
    await expect(levelsOf(loud)).resolves.toEqual(logLevels.slice(1));
    await expect(levelsOf(quiet)).resolves.toEqual(["emergency"]);
  });
});
