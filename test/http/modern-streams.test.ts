import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Listening, listen as listenAt } from "../support/http-tools.ts";
import { HttpWire, json, modern, modernCall, sse } from "../support/http-wire.ts";
import type { Frame } from "../support/wire-schema.ts";

const withToken = { _meta: { progressToken: "t" } };
const revision = "2026-07-28";

let at: Listening;
let wire: HttpWire;
beforeEach(async () => {
  at = await listenAt();
  wire = new HttpWire(at.port, revision);
});
afterEach(async () => {
  wire[Symbol.dispose]();
  await at[Symbol.asyncDispose]();
});

describe("JSON or a stream", () => {
  test("a call that says nothing before its result is answered in JSON", async () => {
    const reply = await (await wire.post(modernCall("echo", { message: "hi" }, withToken))).complete;
    expect(reply.headers["content-type"]).toBe(json);
    expect(reply.json).toMatchObject({ id: 1, result: { resultType: "complete" } });
  });

  test("a call that reports progress becomes a stream with its first report", async () => {
    const { reply } = wire.open(modernCall("recite", {}, withToken));
    await expect.poll(() => at.steps.allow() ?? reply.status).toBe(200);
    expect(reply.isStream).toBe(true);
    at.steps.allow(10);
    await reply.complete;
    expect(reply.messages.map(({ params }) => params?.["message"])).toEqual([
      "one ",
      "two ",
      "three",
      undefined,
    ]);
    expect(reply.messages.at(-1)).toMatchObject({ id: 1, result: { content: [{ text: "one two three" }] } });
  });

  test("a frame is on the wire before the tool goes on", async () => {
    const { reply } = wire.open(modernCall("recite", {}, withToken));
    for (let count = 1; count <= 3; count++) {
      at.steps.allow();
      await reply.message(count);
      expect(reply.messages).toHaveLength(count);
    }
    at.steps.allow();
    await reply.complete;
  });

  test("progress that was not asked for makes no stream", async () => {
    const reply = await (await wire.post(modernCall("burst", { count: 3 }))).complete;
    expect(reply.headers["content-type"]).toBe(json);
  });

  test("a client that takes JSON only gets the same result without the events", async () => {
    const reply = await (
      await wire.post(modernCall("burst", { count: 3 }, withToken), { accept: json })
    ).complete;
    expect(reply.headers["content-type"]).toBe(json);
    expect(reply.json).toMatchObject({ result: { content: [{ text: "done" }] } });
  });

  test("a client that takes streams only gets even a silent result in one", async () => {
    const reply = await (await wire.post(modernCall("echo", { message: "hi" }), { accept: sse })).complete;
    expect(reply.isStream).toBe(true);
    expect(reply.messages).toHaveLength(1);
  });

  test("a client that takes streams only gets a handler's error in one, and a refusal with its status", async () => {
    const unknown = await (await wire.post(modernCall("nowhere"), { accept: sse })).complete;
    expect([unknown.status, unknown.isStream]).toEqual([200, true]);
    expect(unknown.messages[0]).toMatchObject({ id: 1, error: { code: -32602 } });
    const refused = await (await wire.post(modern("tools/invent"), { accept: sse })).complete;
    expect([refused.status, refused.isStream]).toEqual([404, false]);
  });

  test("an error after the first event travels in the stream", async () => {
    const reply = await (await wire.post(modernCall("unspeakable", {}, withToken))).complete;
    expect(reply.isStream).toBe(true);
    expect(reply.messages).toHaveLength(2);
    expect(reply.messages[1]).toHaveProperty("id", 1);
  });

  test("streams say that they must not be held back, and carry no event ids and no priming", async () => {
    const reply = await (await wire.post(modernCall("burst", { count: 2 }, withToken))).complete;
    expect(reply.headers).toMatchObject({
      "x-accel-buffering": "no",
      "cache-control": "no-cache, no-transform",
    });
    expect(reply.events.map(({ id, retry }) => [id, retry])).toEqual(
      reply.events.map(() => [undefined, undefined]),
    );
  });

  test("there is no session: no id is issued, and an id that is sent is ignored", async () => {
    const stray = { "mcp-session-id": "stray", "last-event-id": "x:1" };
    const replies = [
      await wire.post(modernCall("echo", { message: "hi" }), stray),
      await wire.post(modernCall("burst", { count: 1 }, withToken), stray),
    ];
    for (const reply of replies) {
      await reply.complete;
      expect(reply.status).toBe(200);
      expect(reply.headers["mcp-session-id"]).toBeUndefined();
    }
  });
});

describe("logs", () => {
  const level = (logLevel: string): object => ({ _meta: { "io.modelcontextprotocol/logLevel": logLevel } });

  test("are not sent to clients that asked for none", async () => {
    const reply = await (await wire.post(modernCall("chat"))).complete;
    expect(reply.isStream).toBe(false);
  });

  test("are sent from the level that was asked for, on the call's own stream", async () => {
    const message = modernCall("chat", {}, level("warning") as { readonly _meta: object });
    const reply = await (await wire.post(message)).complete;
    expect(reply.messages.map(({ params }) => params?.["data"])).toEqual(["loud", undefined]);
  });
});

describe("a client that hangs up", () => {
  test("aborts its tool before ten more calls are answered, while it streams, and is written nothing more", async () => {
    const { reply, socket } = wire.open(modernCall("wait", { key: "k" }, withToken));
    await reply.message(1);
    socket.cut();
    for (let call = 0; call < 10; call++) await wire.ask(modernCall("echo", { message: "hi" }));
    expect(at.waits.get("k")).toBe("aborted");
    await reply.closed;
    expect(reply.messages).toHaveLength(1);
  });

  test("aborts its tool also when nothing was sent yet", async () => {
    const { reply, socket } = wire.open(modernCall("silent"));
    await expect.poll(() => at.waits.get("silent")).toBe("running");
    socket.socket.end();
    socket.socket.destroy();
    await expect.poll(() => at.waits.get("silent"), { interval: 1 }).toBe("aborted");
    await reply.closed;
    expect(reply.status).toBe(0);
    expect(at.warnings).toEqual([]);
  });

  test("does not abort another's call with the same id", async () => {
    const first = wire.open(modernCall("wait", { key: "first" }, withToken));
    const second = wire.open(modernCall("wait", { key: "second" }, withToken));
    await first.reply.message(1);
    await second.reply.message(1);
    first.socket.cut();
    await expect.poll(() => at.waits.get("first")).toBe("aborted");
    await (
      await wire.post(modern("tools/list"))
    ).complete;
    expect(at.waits.get("second")).toBe("running");
  });

  test("leaves the server as it was", async () => {
    for (let index = 0; index < 20; index++) wire.open(modernCall("silent")).socket.cut();
    expect((await wire.ask(modernCall("echo", { message: "hi" }))).result).toBeDefined();
    expect(at.warnings).toEqual([]);
  });
});

describe("subscriptions/listen", () => {
  const listen = (filter: object, id: string | number = 9): Frame =>
    modern("subscriptions/listen", { notifications: filter }, id);
  const subscriptionId = "io.modelcontextprotocol/subscriptionId";
  const everything = {
    toolsListChanged: true,
    promptsListChanged: true,
    resourceSubscriptions: ["note://today"],
  };

  test("is acknowledged first, with what is honoured", async () => {
    const filter = { toolsListChanged: true, resourceSubscriptions: ["note://today", "note://never"] };
    const reply = await wire.post(listen(filter));
    expect(await reply.message(1)).toMatchObject({
      method: "notifications/subscriptions/acknowledged",
      params: {
        notifications: { toolsListChanged: true, resourceSubscriptions: ["note://today"] },
        _meta: { [subscriptionId]: 9 },
      },
    });
  });

  test.each([7, "seven"])("tags every message with the id of its request, %j", async (id) => {
    const reply = await wire.post(listen(everything, id));
    await reply.message(1);
    at.registry.register("sprout", {}, () => "grown");
    at.resources.updated("note://today");
    await reply.message(3);
    const tags = reply.messages.map(
      ({ params }) => (params!["_meta"] as { readonly [key: string]: unknown })[subscriptionId],
    );
    expect(tags).toEqual([id, id, id]);
  });

  test("sends each listener what it asked for and nothing else", async () => {
    const tools = await wire.post(listen({ toolsListChanged: true }, 1));
    const notes = await wire.post(listen({ resourceSubscriptions: ["note://today"] }, 1));
    await tools.message(1);
    await notes.message(1);
    at.resources.updated("note://today");
    at.registry.register("sprout", {}, () => "grown");
    await tools.message(2);
    await notes.message(2);
    at.registry.unregister("sprout");
    await tools.message(3);
    const methodsOf = ({ messages }: typeof tools): unknown => messages.slice(1).map(({ method }) => method);
    expect(methodsOf(tools)).toEqual(Array(2).fill("notifications/tools/list_changed"));
    expect(methodsOf(notes)).toEqual(["notifications/resources/updated"]);
  });

  test("a listener that leaves costs nothing more", async () => {
    const { reply, socket } = wire.open(listen(everything));
    await reply.message(1);
    socket.cut();
    await reply.closed;
    at.registry.register("sprout", {}, () => "grown");
    expect((await wire.ask(modernCall("sprout"))).result).toBeDefined();
    expect(reply.messages).toHaveLength(1);
  });

  test("a draining server ends it with the result", async () => {
    const reply = await wire.post(listen(everything));
    await reply.message(1);
    const stopped = at.listener[Symbol.asyncDispose]();
    await reply.complete;
    expect(reply.messages.at(-1)).toMatchObject({
      id: 9,
      result: { resultType: "complete", _meta: { [subscriptionId]: 9 } },
    });
    await stopped;
  });

  test("needs a client that takes a stream", async () => {
    const reply = await (await wire.post(listen(everything), { accept: json })).complete;
    expect(reply.status).toBe(406);
    expect(reply.json).toMatchObject({ id: 9 });
  });

  test("needs to be told what to listen for", async () => {
    const answer = await wire.ask(modern("subscriptions/listen", {}, 9));
    expect(answer.error).toMatchObject({ code: -32602 });
  });

  test("is refused when there are too many, before it is acknowledged", async () => {
    await using small = await listenAt({}, { maxListens: 1 });
    using other = new HttpWire(small.port, revision);
    const first = await other.post(listen(everything));
    await first.message(1);
    expect((await other.ask(listen(everything, 10))).error).toMatchObject({ code: -32603 });
  });
});

test("silent streams are kept alive by comments, and nothing reads them as messages", async () => {
  await using brisk = await listenAt({ keepAliveMs: 10 });
  using other = new HttpWire(brisk.port, revision);
  const reply = await other.post(modern("subscriptions/listen", { notifications: {} }));
  await reply.until("comments came", ({ comments }) => comments.length >= 3);
  expect(reply.comments[0]).toBe("keepalive");
  expect(reply.messages).toHaveLength(1);
});
