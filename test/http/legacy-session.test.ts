import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { newestLegacyRevision } from "../../packages/core/src/mcp/revision.ts";
import { type Listening, listen } from "../support/http-tools.ts";
import {
  connectLegacy,
  type HttpWire,
  initializeOf,
  json,
  legacyCall,
  postOf,
  sse,
} from "../support/http-wire.ts";
import { exchange } from "../support/raw-http.ts";
import type { Frame } from "../support/wire-schema.ts";

const ping: Frame = { jsonrpc: "2.0", id: 1, method: "ping" };
const progressToken = { progressToken: 4 };
const capabilities = { elicitation: {}, sampling: {}, roots: {} };
const revisions = ["2025-03-26", "2025-06-18", "2025-11-25"] as const;

describe.each(revisions)("a session of %s", (revision) => {
  let at: Listening;
  let wire: HttpWire;
  beforeEach(async () => {
    at = await listen();
    wire = await connectLegacy(at.port, revision, capabilities);
  });
  afterEach(async () => {
    wire[Symbol.dispose]();
    await at[Symbol.asyncDispose]();
  });

  test("begins with initialize, which settles the revision and gives the id", async () => {
    const reply = await exchange(at.port, postOf(initializeOf(revision)));
    expect(reply.status).toBe(200);
    expect(reply.json).toMatchObject({
      result: { protocolVersion: revision, serverInfo: { name: "http-tools" } },
    });
    expect(reply.headers["mcp-session-id"]).toMatch(/^[\x21-\x7e]{64,}$/);
    expect(reply.headers["mcp-session-id"]).not.toBe(wire.sessionId);
  });

  test("is needed: without its id 400, with one that is not there 404", async () => {
    const list = { jsonrpc: "2.0", id: 1, method: "tools/list" };
    expect((await exchange(at.port, postOf(list))).status).toBe(400);
    for (const method of ["GET", "DELETE"]) {
      expect((await exchange(at.port, { method, headers: [["accept", sse]] })).status).toBe(400);
      const headers = [["mcp-session-id", "no-such"]] as const;
      expect((await exchange(at.port, { method, headers })).status).toBe(404);
    }
    const lost = await exchange(at.port, postOf(list, { "mcp-session-id": "no-such" }));
    expect(lost.status).toBe(404);
    expect(lost.json).toMatchObject({
      id: 1,
      error: { message: expect.stringContaining("initialize") as string },
    });
  });

  test("serves requests in JSON", async () => {
    const reply = await (await wire.post(legacyCall(5, "echo", { message: "hi" }))).complete;
    expect(reply.headers["content-type"]).toBe(json);
    expect(reply.json).toEqual({
      jsonrpc: "2.0",
      id: 5,
      result: { content: [{ type: "text", text: "hi" }] },
    });
  });

  test("answers an unknown method with an error and 200", async () => {
    const reply = await (await wire.post({ jsonrpc: "2.0", id: 5, method: "tools/invent" })).complete;
    expect([reply.status, reply.json]).toEqual([
      200,
      { jsonrpc: "2.0", id: 5, error: { code: -32601, message: "Method not found: tools/invent" } },
    ]);
  });

  test("accepts notifications with 202 and an empty body", async () => {
    const reply = await (
      await wire.post({ jsonrpc: "2.0", method: "notifications/roots/list_changed" })
    ).complete;
    expect([reply.status, reply.body]).toEqual([202, ""]);
  });

  test("cannot be initialized again", async () => {
    const reply = await (await wire.post(initializeOf(revision, {}, 5))).complete;
    expect([reply.status, reply.json]).toMatchObject([400, { id: 5, error: { code: -32600 } }]);
  });

  test("refuses an unknown version header, and works without the header", async () => {
    const list = { jsonrpc: "2.0", id: 1, method: "tools/list" };
    expect((await wire.post(list, { "mcp-protocol-version": "1999-01-01" })).status).toBe(400);
    expect((await wire.post(list, { "mcp-protocol-version": undefined })).status).toBe(200);
    expect((await wire.post(list, { "mcp-protocol-version": revision })).status).toBe(200);
  });

  test("ends with DELETE; then its id is not there", async () => {
    expect((await wire.delete()).status).toBe(200);
    expect((await wire.post(ping)).status).toBe(404);
    expect((await wire.get().reply.head).status).toBe(404);
    expect((await wire.delete()).status).toBe(404);
  });

  test("that is deleted aborts its calls, which are answered, and ends its streams", async () => {
    const { reply } = wire.open(legacyCall(5, "wait", { key: "k" }, progressToken));
    await reply.message(1);
    const announced = await wire.get().reply.head;
    await wire.delete();
    await expect.poll(() => at.waits.get("k")).toBe("aborted");
    await announced.complete;
    await reply.complete;
    expect(reply.messages).toHaveLength(2);
    expect(reply.messages[1]).toMatchObject({ id: 5, error: { data: { delivery: "outcome_unknown" } } });
  });

  test("with an id that was changed anywhere is not there", async () => {
    const id = wire.sessionId!;
    const places = Array.from({ length: 16 }, (_, index) => Math.floor((index * id.length) / 16));
    for (const place of [...places, id.length - 1]) {
      const changed = id.slice(0, place) + (id[place] === "A" ? "B" : "A") + id.slice(place + 1);
      expect((await exchange(at.port, postOf(ping, { "mcp-session-id": changed }))).status).toBe(404);
    }
    expect(
      (await exchange(at.port, postOf(ping, { "mcp-session-id": "v1.".padEnd(8000, "A") }))).status,
    ).toBe(404);
  });

  describe("a call that streams", () => {
    test("gives every frame an id of its own, and primes only clients of 2025-11-25", async () => {
      const reply = await (await wire.post(legacyCall(5, "burst", { count: 3 }, progressToken))).complete;
      expect(reply.headers["mcp-session-id"]).toBe(wire.sessionId);
      const isPrimed = revision === "2025-11-25";
      const [first] = reply.events;
      expect([first!.data, first!.retry]).toEqual(isPrimed ? ["", "1000"] : [expect.any(String), undefined]);
      expect(reply.events).toHaveLength(isPrimed ? 5 : 4);
      const ids = reply.events.map(({ id }) => id);
      expect(ids.every((id) => id !== undefined)).toBe(true);
      expect(new Set(ids).size).toBe(ids.length);
    });

    test("goes on when its client is gone", async () => {
      const { reply, socket } = wire.open(legacyCall(5, "recite", {}, progressToken));
      at.steps.allow();
      await reply.message(1);
      socket.cut();
      at.steps.allow(3);
      await expect.poll(async () => (await wire.ask(ping)).result).toEqual({});
      const rest = wire.get(reply.events.at(-1)!.id).reply;
      await rest.complete;
      expect(rest.messages.at(-1)!.result).toEqual({ content: [{ type: "text", text: "one two three" }] });
    });

    test("goes on when its client was gone before anything was sent", async () => {
      const { socket } = wire.open(legacyCall(5, "silent", {}, progressToken));
      await expect.poll(() => at.waits.get("silent")).toBe("running");
      socket.cut();
      await wire.ask(ping);
      expect(at.waits.get("silent")).toBe("running");
      at.steps.allow();
      await expect
        .poll(async () => (await wire.ask(legacyCall(5, "echo", { message: "" }))).error)
        .toBeUndefined();
      expect(at.warnings).toEqual([]);
    });

    test("is cancelled by the notification, and by no other session's", async () => {
      const cancel = { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 5 } };
      const { reply } = wire.open(legacyCall(5, "wait", { key: "k" }, progressToken));
      await reply.message(1);
      using other = await connectLegacy(at.port, revision);
      await (
        await other.post(cancel)
      ).complete;
      await (
        await wire.post({ ...cancel, params: { requestId: "5" } })
      ).complete;
      await wire.ask(ping);
      expect(at.waits.get("k")).toBe("running");
      await (
        await wire.post(cancel)
      ).complete;
      await expect.poll(() => at.waits.get("k")).toBe("aborted");
      await reply.complete;
      expect(reply.messages).toHaveLength(1);
    });

    test("whose id is in use by another in flight is refused, and the other is left alone", async () => {
      const { reply } = wire.open(legacyCall(5, "recite", {}, progressToken));
      at.steps.allow();
      await reply.message(1);
      expect((await wire.ask(legacyCall(5, "echo", { message: "hi" }))).error).toMatchObject({
        code: -32600,
      });
      at.steps.allow(3);
      await reply.complete;
      expect(reply.messages.at(-1)).toMatchObject({ id: 5, result: {} });
    });

    test("is answered in JSON, without events, to a client that takes nothing else", async () => {
      const call = legacyCall(5, "burst", { count: 3 }, progressToken);
      const reply = await (await wire.post(call, { accept: json })).complete;
      expect(reply.headers["content-type"]).toBe(json);
      expect(reply.messages).toHaveLength(1);
    });

    test("ends with an error when its result cannot be written, and can still be resumed", async () => {
      const reply = await (await wire.post(legacyCall(5, "unspeakable", {}, progressToken))).complete;
      expect(reply.messages.at(-1)).toHaveProperty("id", 5);
      const again = await wire.get(reply.events[0]!.id).reply.complete;
      expect(again.messages.at(-1)).toHaveProperty("id", 5);
    });
  });

  describe("a tool that asks", () => {
    const answered = (id: unknown, result: object): Frame => ({ jsonrpc: "2.0", id: id as number, result });

    test("asks on the stream of its own call, and is answered by a POST", async () => {
      const announced = await wire.get().reply.head;
      const { reply } = wire.open(legacyCall(5, "poem"));
      const asked = await reply.message(1);
      expect(asked).toMatchObject({ method: "sampling/createMessage", params: { maxTokens: 100 } });
      const model = { role: "assistant", content: { type: "text", text: "…" }, model: "m" };
      const accepted = await (await wire.post(answered(asked.id, model))).complete;
      expect([accepted.status, accepted.body]).toEqual([202, ""]);
      await reply.complete;
      expect(reply.messages.at(-1)).toMatchObject({ id: 5, result: { content: [{ text: "m wrote it" }] } });
      expect(announced.messages).toEqual([]);
    });

    test("is not answered by another session", async () => {
      using other = await connectLegacy(at.port, revision, capabilities);
      const { reply } = wire.open(legacyCall(5, "where"));
      const asked = await reply.message(1);
      const evil = answered(asked.id, { roots: [{ uri: "file:///evil" }] });
      await (
        await other.post(evil)
      ).complete;
      await (
        await wire.post(answered(asked.id, { roots: [{ uri: "file:///mine" }] }))
      ).complete;
      await reply.complete;
      expect(reply.messages.at(-1)!.result).toMatchObject({ content: [{ text: "file:///mine" }] });
    });

    test.skipIf(revision === "2025-03-26")("gets what the user filled in", async () => {
      const { reply } = wire.open(legacyCall(5, "greet"));
      const asked = await reply.message(1);
      const content = { name: "Ada" };
      await (
        await wire.post(answered(asked.id, { action: "accept", content }))
      ).complete;
      await reply.complete;
      expect(reply.messages.at(-1)!.result).toMatchObject({ content: [{ text: "Hello, Ada!" }] });
    });

    test("can be asked and answered after the connection was lost in between", async () => {
      const { reply, socket } = wire.open(legacyCall(5, "where"));
      const asked = await reply.message(1);
      socket.cut();
      await (
        await wire.post(answered(asked.id, { roots: [{ uri: "file:///a" }] }))
      ).complete;
      const rest = await wire.get(reply.events.at(-1)!.id).reply.complete;
      expect(rest.messages).toMatchObject([{ id: 5, result: { content: [{ text: "file:///a" }] } }]);
    });

    test("fails for a client that takes no stream to be asked on", async () => {
      const reply = await (await wire.post(legacyCall(5, "where"), { accept: json })).complete;
      expect(reply.json).toMatchObject({ result: { isError: true } });
    });

    test("whose call is cancelled takes its question back", async () => {
      const { reply } = wire.open(legacyCall(5, "where"));
      await reply.message(1);
      const cancel = { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 5 } };
      await (
        await wire.post(cancel)
      ).complete;
      await reply.complete;
      expect(reply.messages.filter(({ id, method }) => id === 5 && method === undefined)).toEqual([]);
    });
  });
});

describe("initialize", () => {
  test.each(["2026-07-28", "1999-01-01", "v999"])(
    "that asks for %s is offered the newest legacy revision",
    async (asked) => {
      await using at = await listen();
      const reply = await exchange(at.port, postOf(initializeOf(asked)));
      expect(reply.json).toMatchObject({ result: { protocolVersion: newestLegacyRevision } });
    },
  );

  test("with more facts about its client than an id can hold is refused", async () => {
    await using at = await listen();
    const reply = await exchange(
      at.port,
      postOf(initializeOf("2025-11-25", { experimental: { x: "y".repeat(5000) } })),
    );
    expect(reply.json).toMatchObject({ error: { code: -32602 } });
    expect(reply.headers["mcp-session-id"]).toBeUndefined();
  });

  test("gives a thousand clients a thousand ids", async () => {
    await using at = await listen();
    const ids = new Set<string>();
    for (let round = 0; round < 20; round++) {
      const replies = Array.from({ length: 50 }, () => exchange(at.port, postOf(initializeOf("2025-11-25"))));
      for (const reply of await Promise.all(replies)) ids.add(reply.headers["mcp-session-id"]!);
    }
    expect(ids.size).toBe(1000);
  });
});
