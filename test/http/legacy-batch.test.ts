import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Listening, listen } from "../support/http-tools.ts";
import {
  connectLegacy,
  type HttpWire,
  initializeOf,
  json,
  legacyCall,
  modern,
  sse,
} from "../support/http-wire.ts";
import type { Frame } from "../support/wire-schema.ts";

const echo = (id: number, message: string): Frame => legacyCall(id, "echo", { message });
const notification: Frame = { jsonrpc: "2.0", method: "notifications/initialized" };

let at: Listening;
let wire: HttpWire;
beforeEach(async () => {
  at = await listen();
  wire = await connectLegacy(at.port, "2025-03-26", { roots: {} });
});
afterEach(async () => {
  wire[Symbol.dispose]();
  await at[Symbol.asyncDispose]();
});

describe("a batch in 2025-03-26", () => {
  test("is answered for each of its requests, in one array", async () => {
    const reply = await (await wire.post([echo(1, "a"), notification, echo(2, "b")])).complete;
    expect(reply.headers["content-type"]).toBe(json);
    expect(reply.json).toMatchObject([
      { id: 1, result: { content: [{ text: "a" }] } },
      { id: 2, result: { content: [{ text: "b" }] } },
    ]);
  });

  test("is answered on one stream when one of its requests has something to say", async () => {
    const burst = legacyCall(2, "burst", { count: 2 }, { progressToken: 1 });
    const reply = await (await wire.post([echo(1, "a"), burst, legacyCall(3, "nowhere")])).complete;
    expect(reply.isStream).toBe(true);
    const answers = reply.messages.filter(({ method }) => method === undefined);
    expect(answers).toHaveLength(3);
    expect(new Set(answers.map(({ id }) => id))).toEqual(new Set([1, 2, 3]));
    expect(reply.messages.filter(({ method }) => method !== undefined)).toHaveLength(2);
  });

  test("is answered on a stream to a client that takes nothing else", async () => {
    const reply = await (await wire.post([echo(1, "a"), echo(2, "b")], { accept: sse })).complete;
    expect(reply.messages.map(({ id }) => id)).toEqual([1, 2]);
  });

  test("of notifications and answers alone is accepted with an empty body", async () => {
    const reply = await (await wire.post([notification, { jsonrpc: "2.0", id: 9, result: {} }])).complete;
    expect([reply.status, reply.body]).toEqual([202, ""]);
  });

  test("brings the answers to several questions at once", async () => {
    const first = wire.open(legacyCall(1, "where")).reply;
    const second = wire.open(legacyCall(2, "where")).reply;
    const asked = await Promise.all([first.message(1), second.message(1)]);
    const answers = asked.map(({ id }, index) => ({
      jsonrpc: "2.0",
      id: id!,
      result: { roots: [{ uri: `file:///${index}` }] },
    }));
    await (
      await wire.post(answers)
    ).complete;
    await Promise.all([first.complete, second.complete]);
    expect(first.messages.at(-1)!.result).toMatchObject({ content: [{ text: "file:///0" }] });
    expect(second.messages.at(-1)!.result).toMatchObject({ content: [{ text: "file:///1" }] });
  });

  test.each<[string, readonly unknown[]]>([
    ["initialize", [echo(1, "a"), initializeOf("2025-03-26")]],
    ["a modern request", [echo(1, "a"), modern("tools/list")]],
    ["what is not a message", [echo(1, "a"), 7]],
    ["a batch", [echo(1, "a"), [echo(2, "b")]]],
    ["nothing", []],
  ])("with %s in it is refused whole", async (_, batch) => {
    const reply = await (await wire.post(batch as readonly Frame[])).complete;
    expect([reply.status, reply.json]).toMatchObject([400, { error: { code: -32600 } }]);
  });

  test("of more than 128 messages is refused", async () => {
    const many = Array.from({ length: 129 }, (_, index) => echo(index, "x"));
    expect((await wire.post(many)).status).toBe(400);
    const reply = await (await wire.post(many.slice(1))).complete;
    expect(reply.json).toHaveLength(128);
  });

  test("with one id twice is refused, because its answers could not be told apart", async () => {
    const reply = await (await wire.post([echo(1, "a"), echo(1, "b")])).complete;
    expect([reply.status, reply.json]).toMatchObject([400, { error: { code: -32600 } }]);
  });
});

test.each(["2025-06-18", "2025-11-25"] as const)("a batch in %s is refused", async (revision) => {
  using other = await connectLegacy(at.port, revision);
  const reply = await (await other.post([echo(1, "a")])).complete;
  expect([reply.status, reply.json]).toMatchObject([400, { error: { code: -32600 } }]);
});
