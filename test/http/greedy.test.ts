// One caller that takes all it can get, and another that wants little.
import { describe, expect, test, vi } from "vitest";
import type { Server } from "../../packages/core/src/mcp/server.ts";
import type { Provider } from "../../packages/core/src/provider/provider.ts";
import type { ListenHttpOptions } from "../../packages/server/src/http/http-options.ts";
import { listenHttp } from "../../packages/server/src/http/listen-http.ts";
import { createHttpTools, type HttpTools } from "../support/http-tools.ts";
import {
  connectLegacy,
  HttpWire,
  initializeOf,
  legacyCall,
  modern,
  modernCall,
} from "../support/http-wire.ts";
import type { RawReply } from "../support/raw-http.ts";

const greedy = { authorization: "greedy" };
const modest = { authorization: "modest" };

interface Started extends HttpTools, AsyncDisposable {
  readonly port: number;
  /** Takes a key away. */
  revoke(caller: string): void;
}

/** Callers are whom they say they are. */
async function start(options: ListenHttpOptions = {}): Promise<Started> {
  const tools = createHttpTools(options.perCaller === undefined ? {} : { perCaller: options.perCaller });
  for (const uri of ["a:1", "a:2", "a:3", "a:4"]) tools.resources.register(uri, { name: uri }, () => uri);
  let revoke: (caller: string) => void = () => {};
  const server: Server = {
    ...tools.server,
    onRevoked: (listener) => {
      revoke = listener;
      return () => {};
    },
  };
  const authenticate = (header: (name: string) => string | undefined): string | undefined =>
    header("authorization");
  const listener = await listenHttp(server, {
    port: 0,
    authenticate,
    onWarning: () => {},
    graceMs: 100,
    ...options,
  });
  return {
    ...tools,
    port: listener.port,
    revoke: (caller) => revoke(caller),
    [Symbol.asyncDispose]: () => listener.close(),
  };
}

function wireOf(port: number, headers: { readonly authorization: string }): HttpWire {
  const wire = new HttpWire(port, "2026-07-28");
  Object.assign(wire.headers, headers);
  return wire;
}

const legacyOf = (port: number, headers: { readonly authorization: string }): Promise<HttpWire> =>
  connectLegacy(port, "2025-11-25", {}, headers);

const listenTo = (uris: readonly string[], id = 7): ReturnType<typeof modern> =>
  modern("subscriptions/listen", { notifications: { resourceSubscriptions: uris } }, id);

const many = (count: number): readonly string[] =>
  Array.from({ length: count }, (_, index) => `note://${index}`);

const subscribe = (uri: string, id = 1): ReturnType<typeof modern> => ({
  jsonrpc: "2.0",
  id,
  method: "resources/subscribe",
  params: { uri },
});

const refused = { code: -32603, data: { code: "rpc.too_many", delivery: "not_sent" } };

describe("subscriptions", () => {
  test("to 100,000 resources in one request are refused before any of them is looked at", async () => {
    await using at = await start();
    const watched = vi.spyOn(at.registry as { watch: NonNullable<Provider["watch"]> }, "watch");
    using wire = wireOf(at.port, greedy);
    const reply = await (await wire.post(listenTo(many(100_000)))).complete;
    expect([reply.status, reply.headers["retry-after"], reply.json]).toMatchObject([
      429,
      "1",
      { id: 7, error: refused },
    ]);
    expect(watched).not.toHaveBeenCalled();
  });

  test("count for a caller in all its requests, and are given back when it leaves", async () => {
    await using at = await start({ perCaller: { subscriptions: 5 } });
    using wire = wireOf(at.port, greedy);
    using other = wireOf(at.port, modest);
    const open = wire.open(listenTo(many(4)));
    await open.reply.message(1);
    expect((await wire.post(listenTo(many(2)))).status).toBe(429);
    expect((await other.post(listenTo(many(5)))).status).toBe(200);
    open.socket.cut();
    await expect.poll(async () => (await wire.post(listenTo(many(5)))).status).toBe(200);
  });

  test("of legacy sessions count together, and are given back when a session ends", async () => {
    await using at = await start({ perCaller: { subscriptions: 3 } });
    using one = await legacyOf(at.port, greedy);
    using two = await legacyOf(at.port, greedy);
    using other = await legacyOf(at.port, modest);
    for (const uri of ["a:1", "a:2", "a:2"])
      expect(await one.ask(subscribe(uri))).toMatchObject({ result: {} });
    expect(await two.ask(subscribe("a:1"))).toMatchObject({ result: {} });
    expect(await two.ask(subscribe("a:3"))).toMatchObject({ error: refused });
    expect(await other.ask(subscribe("a:1"))).toMatchObject({ result: {} });
    await one.ask({ jsonrpc: "2.0", id: 2, method: "resources/unsubscribe", params: { uri: "a:1" } });
    expect(await two.ask(subscribe("a:3"))).toMatchObject({ result: {} });
    expect(await two.ask(subscribe("a:4"))).toMatchObject({ error: refused });
    await one.delete();
    expect(await two.ask(subscribe("a:4"))).toMatchObject({ result: {} });
  });
});

describe("completions", () => {
  const complete = (): object =>
    modern("completion/complete", {
      ref: { type: "ref/prompt", name: "guide" },
      argument: { name: "city", value: "B" },
    });

  test("are limited for each caller", async () => {
    await using at = await start({ perCaller: { completionsPerMinute: 1 } });
    using wire = wireOf(at.port, greedy);
    using other = wireOf(at.port, modest);
    expect(await wire.ask(complete())).toMatchObject({ result: { completion: { values: ["Bern"] } } });
    const reply = await (await wire.post(complete())).complete;
    expect([reply.status, reply.json]).toMatchObject([
      429,
      { error: { ...refused, message: expect.stringContaining("at most 1 a minute") as string } },
    ]);
    expect(await other.ask(complete())).toMatchObject({ result: { completion: { values: ["Bern"] } } });
    expect((await wire.ask(modernCall("echo", { message: "free" }))).result).toBeDefined();
  });
});

describe("calls underway", () => {
  test("are limited for each caller, in both eras together, and only while they run", async () => {
    await using at = await start({ perCaller: { calls: 3 } });
    using wire = wireOf(at.port, greedy);
    using session = await legacyOf(at.port, greedy);
    using other = wireOf(at.port, modest);
    const calls = [wire.open(modernCall("silent")), wire.open(modernCall("silent"))];
    const legacy = session.open(legacyCall(1, "silent"));
    await expect.poll(() => at.steps.waiting).toBe(3);
    const reply = await (await wire.post(modernCall("silent"))).complete;
    expect([reply.status, reply.json]).toMatchObject([429, { error: refused }]);
    expect(await session.ask(legacyCall(2, "silent"))).toMatchObject({ error: refused });
    const theirs = other.open(modernCall("silent"));
    await expect.poll(() => at.steps.waiting).toBe(4);
    at.steps.allow(4);
    await Promise.all([...calls, legacy, theirs].map(({ reply: each }) => each.complete));
    at.steps.allow(1);
    expect((await wire.ask(modernCall("silent"))).result).toBeDefined();
  });

  test("of a caller whose key was revoked no longer count", async () => {
    await using at = await start({ perCaller: { calls: 2, streams: 1 } });
    using wire = wireOf(at.port, greedy);
    const calls = [wire.open(modernCall("silent")), wire.open(modernCall("silent"))];
    await wire.open(listenTo([])).reply.message(1);
    await expect.poll(() => at.steps.waiting).toBe(2);
    expect((await wire.post(modernCall("silent"))).status).toBe(429);
    expect((await wire.post(listenTo([]))).status).toBe(429);
    at.revoke("greedy");
    await Promise.all(calls.map(({ reply }) => reply.complete));
    at.steps.allow(1);
    expect((await wire.ask(modernCall("silent"))).result).toBeDefined();
    await expect.poll(async () => (await wire.post(listenTo([]))).status).toBe(200);
  });
});

describe("sessions", () => {
  const begin = async (wire: HttpWire): Promise<RawReply> =>
    (await wire.post(initializeOf("2025-11-25"))).complete;

  test("that one caller keeps busy leave room for another", async () => {
    await using at = await start({ maxSessions: 20 });
    const wires: HttpWire[] = [];
    const statuses: number[] = [];
    for (let count = 0; count < 30; count++) {
      const wire = new HttpWire(at.port, "2025-11-25");
      Object.assign(wire.headers, greedy);
      wires.push(wire);
      const reply = await begin(wire);
      statuses.push(reply.status);
      wire.sessionId = reply.headers["mcp-session-id"];
      if (reply.status === 200) await wire.get().reply.head;
    }
    expect(statuses.filter((status) => status === 200)).toHaveLength(16);
    expect(statuses.filter((status) => status === 429)).toHaveLength(14);
    using other = await legacyOf(at.port, modest);
    expect((await other.ask({ jsonrpc: "2.0", id: 1, method: "ping" })).result).toEqual({});
    for (const wire of wires) wire[Symbol.dispose]();
  });

  test("that are idle go before those of a caller with fewer", async () => {
    await using at = await start({ maxSessions: 20 });
    using other = await legacyOf(at.port, modest);
    await other.ask(subscribe("a:1"));
    const wires: HttpWire[] = [];
    for (let count = 0; count < 100; count++) wires.push(await legacyOf(at.port, greedy));
    at.resources.updated("a:1");
    // A session that was dropped has forgotten what it subscribed to.
    const { reply } = other.get();
    await reply.until("the change is told", ({ messages }) => messages.length > 0);
    for (const wire of wires) wire[Symbol.dispose]();
  });
});
