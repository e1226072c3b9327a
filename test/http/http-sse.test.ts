import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import {
  CallToolResultSchema,
  ListRootsRequestSchema,
  ToolListChangedNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createVirtualClock } from "../../packages/junctor/src/testing/virtual-clock.ts";
import { type Listening, listen } from "../support/http-tools.ts";
import { initializeOf, json, legacyCall, postOf, toPairs } from "../support/http-wire.ts";
import { exchange, type RawReply, RawSocket } from "../support/raw-http.ts";
import { assertValidFrame, type Frame } from "../support/wire-schema.ts";

const revision = "2024-11-05";

let at: Listening;
beforeEach(async () => void (at = await listen()));
afterEach(() => at[Symbol.asyncDispose]());

/** The oldest kind of client, by hand. */
class Conversation implements Disposable {
  readonly socket = new RawSocket(at.port);
  readonly stream: RawReply = this.socket.send({
    method: "GET",
    path: "/sse",
    headers: [["accept", "text/event-stream"]],
  });
  readonly #sent: Frame[] = [];

  async endpoint(): Promise<string> {
    return (await this.stream.event(1)).data!;
  }

  async post(message: Frame, path?: string): Promise<RawReply> {
    this.#sent.push(message);
    const request = { ...postOf(message), path: path ?? (await this.endpoint()) };
    return exchange(at.port, request);
  }

  async answer(message: Frame): Promise<Frame> {
    await this.post(message);
    const isAnswer = (frame: Frame): boolean => frame.id === message.id && frame.method === undefined;
    await this.stream.until("the answer came", () => this.frames.some(isAnswer));
    return this.frames.find(isAnswer)!;
  }

  get frames(): readonly Frame[] {
    return this.stream.events.slice(1).map(({ data }) => JSON.parse(data!) as Frame);
  }

  [Symbol.dispose](): void {
    this.socket[Symbol.dispose]();
    for (const frame of this.frames)
      assertValidFrame(
        "server",
        revision,
        this.#sent.find(({ id }) => id === frame.id),
        frame,
      );
  }
}

describe("HTTP+SSE, by hand", () => {
  test("the first event says where to post, with a token that cannot be guessed", async () => {
    using one = new Conversation();
    using two = new Conversation();
    expect(await one.endpoint()).toMatch(/^\/messages\?sessionId=[A-Za-z0-9_-]{32}$/);
    expect(await one.endpoint()).not.toBe(await two.endpoint());
    expect(one.stream.events[0]).toMatchObject({ event: "endpoint" });
    expect(one.stream.headers).toMatchObject({
      "content-type": "text/event-stream",
      "x-accel-buffering": "no",
    });
  });

  test("what is posted is answered on the stream, and the POST with 202", async () => {
    using client = new Conversation();
    const accepted = await client.post(initializeOf(revision));
    expect([accepted.status, accepted.body]).toEqual([202, "Accepted"]);
    await client.stream.event(2);
    expect(client.frames[0]).toMatchObject({ id: 0, result: { protocolVersion: revision } });
    expect(client.stream.events[1]).toEqual({ event: "message", data: expect.any(String) as string });
    const answer = await client.answer(legacyCall(1, "echo", { message: "hi" }));
    expect(answer.result).toEqual({ content: [{ type: "text", text: "hi" }] });
  });

  test("each stream gets its own answers, though all use the same ids", async () => {
    const clients = Array.from({ length: 10 }, () => new Conversation());
    const answers = clients.map(async (client, index) => {
      await client.answer(initializeOf(revision));
      return client.answer(legacyCall(1, "echo", { message: `${index}` }));
    });
    const texts = (await Promise.all(answers)).map(({ result }) => JSON.stringify(result));
    for (const [index, text] of texts.entries()) expect(text).toContain(`"text":"${index}"`);
    for (const client of clients) client[Symbol.dispose]();
  });

  test("progress comes on the stream before the result", async () => {
    using client = new Conversation();
    await client.answer(initializeOf(revision));
    await client.answer(legacyCall(1, "burst", { count: 2 }, { progressToken: 7 }));
    const methods = client.frames.slice(1).map(({ method }) => method);
    expect(methods).toEqual(["notifications/progress", "notifications/progress", undefined]);
  });

  test.each([
    ["an unknown session", "/messages?sessionId=unknown", 404],
    ["no session", "/messages", 400],
    ["an empty session", "/messages?sessionId=", 404],
  ])("%s cannot be posted to", async (_, path, status) => {
    const reply = await exchange(at.port, { ...postOf(initializeOf(revision)), path });
    expect([reply.status, reply.headers["content-type"]]).toEqual([status, json]);
  });

  test("another caller's session cannot be posted to", async () => {
    const authenticate = (header: (name: string) => string | undefined): string | undefined =>
      header("x-caller");
    await using other = await listen({ authenticate });
    using socket = new RawSocket(other.port);
    const alice = toPairs({ "x-caller": "alice" });
    const stream = socket.send({ method: "GET", path: "/sse", headers: alice });
    const path = (await stream.event(1)).data!;
    const post = (caller: string): Promise<RawReply> =>
      exchange(other.port, { ...postOf(initializeOf(revision), { "x-caller": caller }), path });
    expect((await post("bob")).status).toBe(404);
    expect((await post("alice")).status).toBe(202);
  });

  test.each(["{", "[", ""])("what is not JSON is refused: %j", async (body) => {
    using client = new Conversation();
    const reply = await exchange(at.port, { ...postOf(body), path: await client.endpoint() });
    expect(reply.status).toBe(400);
  });

  test("the end of the stream is the end of the session, and of what it was doing", async () => {
    using client = new Conversation();
    const path = await client.endpoint();
    await client.answer(initializeOf(revision));
    await client.post(legacyCall(1, "wait", { key: "k" }));
    await expect.poll(() => at.waits.get("k")).toBe("running");
    client.socket.cut();
    await expect.poll(() => at.waits.get("k")).toBe("aborted");
    await expect.poll(async () => (await client.post(legacyCall(2, "echo"), path)).status).toBe(404);
  });

  test("notifications/cancelled aborts a call, and nothing more is sent for it", async () => {
    using client = new Conversation();
    await client.answer(initializeOf(revision));
    await client.post(legacyCall(1, "wait", { key: "k" }));
    await expect.poll(() => at.waits.get("k")).toBe("running");
    await client.post({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 1 } });
    await expect.poll(() => at.waits.get("k")).toBe("aborted");
    await client.answer({ jsonrpc: "2.0", id: 2, method: "ping" });
    expect(client.frames.map(({ id }) => id)).toEqual([0, 2]);
  });
});

describe("a reader that stalls", () => {
  const piece = "x".repeat(64 * 1024);

  test("is cut, with the reason, when a tool does not wait for it; and the tool is aborted", async () => {
    let sent = 0;
    let isAborted = false;
    at.registry.register("gush", {}, async (_, { progress, signal }) => {
      for (; sent < 1600 && !signal.aborted; sent++) {
        void progress(sent + 1, undefined, piece);
        if (sent % 8 === 0) await new Promise((resolve) => setImmediate(resolve));
      }
      isAborted = signal.aborted;
    });
    const client = new Conversation();
    await client.answer(initializeOf(revision));
    client.socket.socket.pause();
    await client.post(legacyCall(1, "gush", {}, { progressToken: 1 }));
    await expect.poll(() => at.warnings).toHaveLength(1);
    expect(at.warnings[0]).toMatch(/^A client was cut off: the reader is slow: \d+ characters wait for it$/);
    await expect.poll(() => isAborted).toBe(true);
    expect(sent).toBeLessThan(1600);
    client.socket.cut();
  });

  test("is not what a reader is that gets many large answers at once", async () => {
    const { steps } = at;
    at.registry.register("large", {}, async () => {
      await steps.step();
      return piece.repeat(8);
    });
    using client = new Conversation();
    await client.answer(initializeOf(revision));
    for (let id = 1; id <= 10; id++) await client.post(legacyCall(id, "large"));
    steps.allow(10);
    await client.stream.until("all came", () => client.stream.events.length === 12);
    expect(at.warnings).toEqual([]);
  });
});

describe("a server that stops", () => {
  test("lets a call of such a client finish, then ends its stream", async () => {
    const clock = createVirtualClock();
    await using patient = await listen({ graceMs: 10_000, clock });
    using socket = new RawSocket(patient.port);
    const stream = socket.send({ method: "GET", path: "/sse" });
    const path = (await stream.event(1)).data!;
    await exchange(patient.port, { ...postOf(initializeOf(revision)), path });
    await exchange(patient.port, { ...postOf(legacyCall(1, "silent")), path });
    await expect.poll(() => patient.waits.get("silent")).toBe("running");
    const stopped = patient.listener[Symbol.asyncDispose]();
    const refused = await exchange(patient.port, { ...postOf(legacyCall(2, "echo", { message: "" })), path });
    expect(refused.status).toBe(503);
    // Longer than a channel whose client left is given; this client has not left.
    await clock.advance(5000);
    expect(patient.waits.get("silent")).toBe("running");
    patient.steps.allow();
    await stream.complete;
    expect(JSON.parse(stream.events.at(-1)!.data!)).toMatchObject({
      id: 1,
      result: { content: [{ text: "spoken" }] },
    });
    await stopped;
  });

  test.each([
    [
      "that came in a batch",
      "2025-03-26",
      [[legacyCall(1, "silent"), { jsonrpc: "2.0", id: 2, method: "ping" }]],
    ],
    [
      "whose id was used again meanwhile",
      revision,
      [legacyCall(1, "silent"), { jsonrpc: "2.0", id: 1, method: "ping" }],
    ],
  ])("lets a call finish %s", async (_, spoken, messages) => {
    await using patient = await listen({ graceMs: 600_000 });
    using socket = new RawSocket(patient.port);
    const stream = socket.send({ method: "GET", path: "/sse" });
    const path = (await stream.event(1)).data!;
    await exchange(patient.port, { ...postOf(initializeOf(spoken)), path });
    await stream.event(2);
    for (const message of messages) await exchange(patient.port, { ...postOf(message), path });
    await expect.poll(() => patient.waits.get("silent")).toBe("running");
    const stopped = patient.listener[Symbol.asyncDispose]();
    const late = [{ jsonrpc: "2.0", id: 9, method: "ping" }];
    expect((await exchange(patient.port, { ...postOf(late), path })).status).toBe(503);
    expect(patient.waits.get("silent")).toBe("running");
    patient.steps.allow();
    await stream.complete;
    expect(stream.events.map(({ data }) => data).join("\n")).toContain("spoken");
    await stopped;
  });

  test("answers a call that was accepted just before", async () => {
    await using patient = await listen({ graceMs: 600_000 });
    using socket = new RawSocket(patient.port);
    const stream = socket.send({ method: "GET", path: "/sse" });
    const path = (await stream.event(1)).data!;
    await exchange(patient.port, { ...postOf(initializeOf(revision)), path });
    await stream.event(2);
    const post = (id: number): Promise<number> => {
      const call = postOf(legacyCall(id, "echo", { message: "x" }));
      return exchange(patient.port, { ...call, path }).then(
        ({ status }) => status,
        () => 0, // The port was closed before it came.
      );
    };
    const posts = Array.from({ length: 20 }, (_, index) => post(index + 1));
    await Promise.race(posts);
    await patient.listener[Symbol.asyncDispose]();
    await stream.complete;
    const statuses = await Promise.all(posts);
    const accepted = statuses.flatMap((status, index) => (status === 202 ? [index + 1] : []));
    expect(accepted).not.toEqual([]);
    const answered = stream.events.slice(2).map(({ data }) => (JSON.parse(data!) as Frame).id);
    expect(answered).toEqual(expect.arrayContaining(accepted));
  });

  test("does not wait for a client that leaves meanwhile", async () => {
    await using patient = await listen({ graceMs: 600_000 });
    using socket = new RawSocket(patient.port);
    const stream = socket.send({ method: "GET", path: "/sse" });
    const path = (await stream.event(1)).data!;
    await exchange(patient.port, { ...postOf(initializeOf(revision)), path });
    await exchange(patient.port, { ...postOf(legacyCall(1, "silent")), path });
    await expect.poll(() => patient.waits.get("silent")).toBe("running");
    const stopped = patient.listener[Symbol.asyncDispose]();
    socket.cut();
    await stopped;
    expect(patient.waits.get("silent")).toBe("aborted");
  });

  test("ends idle streams, however long calls may take", async () => {
    await at[Symbol.asyncDispose]();
    at = await listen({ graceMs: 600_000 });
    using client = new Conversation();
    await client.answer(initializeOf(revision));
    await at.listener[Symbol.asyncDispose]();
    await client.stream.complete;
  });
});

describe("the official client of that transport", () => {
  test("lists, calls, streams, is asked, is told of changes, cancels and leaves", async () => {
    const client = new Client({ name: "old", version: "1.0.0" }, { capabilities: { roots: {} } });
    client.setRequestHandler(ListRootsRequestSchema, () => ({ roots: [{ uri: "file:///home" }] }));
    const changes: string[] = [];
    client.setNotificationHandler(
      ToolListChangedNotificationSchema,
      ({ method }) => void changes.push(method),
    );
    await client.connect(new SSEClientTransport(new URL(`http://127.0.0.1:${at.port}/sse`)));

    expect((await client.listTools()).tools.map(({ name }) => name)).toContain("echo");
    const echoed = await client.callTool({ name: "echo", arguments: { message: "hi" } });
    expect(echoed.content).toEqual([{ type: "text", text: "hi" }]);

    const seen: unknown[] = [];
    const onprogress = ({ message }: { message?: string | undefined }): void => void seen.push(message);
    at.steps.allow(3);
    const reciting = client.callTool({ name: "recite", arguments: {} }, CallToolResultSchema, { onprogress });
    await expect.poll(() => seen.length).toBe(3);
    at.steps.allow();
    expect((await reciting).content).toEqual([{ type: "text", text: "one two three" }]);
    expect(seen).toEqual(["one ", "two ", "three"]);

    const where = await client.callTool({ name: "where", arguments: {} });
    expect(where.content).toEqual([{ type: "text", text: "file:///home" }]);

    at.registry.register("sprout", {}, () => "grown");
    await expect.poll(() => changes).toEqual(["notifications/tools/list_changed"]);

    const controller = new AbortController();
    const waiting = client.callTool({ name: "wait", arguments: { key: "k" } }, undefined, {
      signal: controller.signal,
    });
    await expect.poll(() => at.waits.get("k")).toBe("running");
    controller.abort();
    await expect(waiting).rejects.toThrow(/abort/i);
    await expect.poll(() => at.waits.get("k")).toBe("aborted");
    await client.close();
  });
});
