import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { compose } from "../../packages/core/src/compose/compose.ts";
import { listenHttp } from "../../packages/server/src/http/listen-http.ts";
import type { HttpListener } from "../../packages/server/src/http/node.ts";
import { createRegistry } from "../../packages/server/src/registry/registry.ts";
import { createServer } from "../../packages/server/src/wire/server.ts";
import { connectLegacy, type HttpWire, legacyCall } from "../support/http-wire.ts";
import type { Message, RawReply } from "../support/raw-http.ts";
import { createSteps, type Steps } from "../support/steps.ts";

const revision = "2025-03-26";

interface Seed {
  readonly listener: HttpListener;
  readonly steps: Steps;
  /** Whether the last `chat` has ended. */
  readonly isFinished: () => boolean;
}

/** The dialect of the seed document: every answer is a stream, and progress comes without being asked for. */
async function listenToSeed(): Promise<Seed> {
  const steps = createSteps();
  let isFinished = false;
  const claudecode = createRegistry({ onError: () => {} });
  claudecode.register("chat", {}, async function* () {
    isFinished = false;
    try {
      for (const word of ["Hello", " world"]) {
        yield word;
        await steps.step();
      }
    } finally {
      isFinished = true;
    }
  });
  claudecode.register("search", {}, async function* () {
    yield { type: "toolUse", name: "grep" };
    yield "found";
    yield { type: "complete" };
    yield "never said";
  });
  claudecode.register("break", {}, async function* () {
    yield "so far";
    yield { type: "error", message: "Session 'foo' not found" };
    yield "never said";
  });
  claudecode.register("fall", {}, async function* () {
    yield "so far";
    throw new Error("a secret detail");
  });
  const all = compose({ claudecode }, { separator: ".", bareNames: "refuse" });
  const server = createServer(all, { name: "seed", version: "1.0.0" }, { progress: "always" });
  const listener = await listenHttp(server, { port: 0, responses: "sse" });
  return { listener, steps, isFinished: () => isFinished };
}

function progressOf(reply: RawReply): readonly Message[] {
  return reply.messages.filter(({ method }) => method === "notifications/progress");
}

const accept = "text/event-stream";

describe("seed 001: tools/call streams over SSE", () => {
  let seed: Seed;
  let wire: HttpWire;

  beforeAll(async () => {
    seed = await listenToSeed();
    wire = await connectLegacy(seed.listener.port, revision);
  });
  afterAll(async () => {
    wire[Symbol.dispose]();
    await seed.listener[Symbol.asyncDispose]();
  });

  test("each piece is on the wire before the tool goes on, and the result ends the stream", async () => {
    const { reply } = wire.open(legacyCall(1, "claudecode.chat"), { accept });
    await reply.head;
    expect(reply.status).toBe(200);
    expect(reply.headers).toMatchObject({ "content-type": "text/event-stream", "x-accel-buffering": "no" });
    expect(reply.headers["cache-control"]).toContain("no-cache");

    expect((await reply.message(1)).params).toMatchObject({ message: "Hello" });
    expect(seed.isFinished()).toBe(false);
    seed.steps.allow();
    expect((await reply.message(2)).params).toMatchObject({ message: " world" });
    expect(seed.isFinished()).toBe(false);
    expect(reply.isComplete).toBe(false);
    seed.steps.allow();

    await reply.complete;
    expect(seed.isFinished()).toBe(true);
    expect(reply.messages).toHaveLength(3);
    expect(reply.messages[2]).toEqual({
      jsonrpc: "2.0",
      id: 1,
      result: { content: [{ type: "text", text: "Hello world" }] },
    });
  });

  test("every frame is a message event with an id of its own", async () => {
    seed.steps.allow(2);
    const reply = await (await wire.post(legacyCall(1, "claudecode.chat"), { accept })).complete;
    expect(reply.events.map(({ event }) => event)).toEqual(["message", "message", "message"]);
    const ids = reply.events.map(({ id }) => id);
    expect(ids.every((id) => id !== undefined && id !== "")).toBe(true);
    expect(new Set(ids).size).toBe(3);
  });

  test("progress notifications have a message, growing numbers and one token of the server's own", async () => {
    seed.steps.allow(2);
    const reply = await (await wire.post(legacyCall(1, "claudecode.chat"), { accept })).complete;
    const params = progressOf(reply).map((message) => message.params!);
    expect(params.map(({ message }) => message)).toEqual(["Hello", " world"]);
    expect(params.map(({ progress }) => progress)).toEqual([1, 2]);
    const [token, ...others] = new Set(params.map(({ progressToken }) => progressToken));
    expect(token).toEqual(expect.any(String));
    expect(others).toEqual([]);
  });

  test("a client's own token is used where it sent one", async () => {
    seed.steps.allow(2);
    const call = legacyCall(1, "claudecode.chat", {}, { progressToken: "xyz" });
    const reply = await (await wire.post(call, { accept })).complete;
    expect(progressOf(reply).map(({ params }) => params!["progressToken"])).toEqual(["xyz", "xyz"]);
  });

  test("the use of a tool is reported, and a complete event ends the stream", async () => {
    const reply = await (await wire.post(legacyCall(1, "claudecode.search"), { accept })).complete;
    expect(progressOf(reply).map(({ params }) => params!["message"])).toEqual(["Using tool: grep", "found"]);
    expect(reply.messages.at(-1)!.result).toEqual({ content: [{ type: "text", text: "found" }] });
  });

  test("an error event closes the stream with isError", async () => {
    const reply = await (await wire.post(legacyCall(1, "claudecode.break"), { accept })).complete;
    expect(reply.messages).toHaveLength(2);
    expect(reply.messages[1]).toEqual({
      jsonrpc: "2.0",
      id: 1,
      result: { content: [{ type: "text", text: "Session 'foo' not found" }], isError: true },
    });
  });

  test("a tool that falls over closes the stream with isError, and keeps its detail to itself", async () => {
    const reply = await (await wire.post(legacyCall(1, "claudecode.fall"), { accept })).complete;
    expect(reply.messages.at(-1)!.result).toMatchObject({ isError: true });
    expect(JSON.stringify(reply.messages)).not.toContain("secret");
  });

  test("a wrong name closes the stream with an error", async () => {
    const reply = await (await wire.post(legacyCall(1, "no-dot-here"), { accept })).complete;
    expect(reply.isStream).toBe(true);
    expect(reply.messages).toEqual([
      { jsonrpc: "2.0", id: 1, error: { code: -32602, message: "Invalid tool name format: 'no-dot-here'" } },
    ]);
  });

  test("the header Mcp-Session-Id names the session on the answer to initialize and on every stream", async () => {
    using other = await connectLegacy(seed.listener.port, revision);
    const reply = await (await wire.post(legacyCall(1, "claudecode.search"), { accept })).complete;
    expect(wire.sessionId).toMatch(/^[\x21-\x7e]{32,}$/);
    expect(reply.headers["mcp-session-id"]).toBe(wire.sessionId);
    expect(other.sessionId).not.toBe(wire.sessionId);
  });

  test("works as Streamable HTTP of 2025-03-26: the handshake settles it", async () => {
    using fresh = await connectLegacy(seed.listener.port, revision);
    const begun = await fresh.ask({ jsonrpc: "2.0", id: 2, method: "tools/list" });
    expect(begun.result).toMatchObject({ tools: [{ name: "claudecode.chat" }, {}, {}, {}] });
    expect((await fresh.delete()).status).toBe(200);
  });
});
