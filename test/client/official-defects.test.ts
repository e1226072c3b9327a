// What the official TypeScript client gets wrong, by its own issue tracker, and what must not be wrong here.
import { expect, onTestFinished, test } from "vitest";
import { connect } from "../../packages/client/src/client/connect.ts";
import { createEraCache } from "../../packages/client/src/client/negotiate.ts";
import type { CallEvent } from "../../packages/core/src/provider/context.ts";
import { createVirtualClock } from "../../packages/junctor/src/testing/virtual-clock.ts";
import { FakeHttp, startSse, toReply } from "../support/fake-http.ts";
import { FakePipe } from "../support/fake-pipe.ts";
import { legacyScript, modernScript, text } from "../support/fake-script.ts";
import { progressTokenOf } from "../support/progress-token.ts";

const echo = { message: "" };

test("progress in the same read as the response is delivered, and first (typescript-sdk#2580)", async () => {
  const pipe = new FakePipe((message) => {
    if (message.method !== "tools/call") return modernScript()(message);
    const progressToken = progressTokenOf(message);
    const progress = (value: number): object => ({
      jsonrpc: "2.0",
      method: "notifications/progress",
      params: { progressToken, progress: value },
    });
    pipe.send(progress(1), progress(2), { jsonrpc: "2.0", id: message.id, result: text("done") });
    return undefined;
  });
  const client = await connect(pipe.target);
  const seen: (CallEvent | "result")[] = [];
  await client.callTool("echo", echo, { onEvent: (event) => void seen.push(event) });
  seen.push("result");
  expect(seen).toEqual([{ kind: "progress", progress: 1 }, { kind: "progress", progress: 2 }, "result"]);
});

test("the same over HTTP, where both are in one chunk", async () => {
  await using server = await FakeHttp.listen((request, response) => {
    const { message } = request;
    if (message?.method !== "tools/call") return toReply(request, modernScript()(message!));
    const progressToken = progressTokenOf(message);
    const progress = {
      jsonrpc: "2.0",
      method: "notifications/progress",
      params: { progressToken, progress: 1 },
    };
    const result = { jsonrpc: "2.0", id: message.id, result: text("done") };
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(`data: ${JSON.stringify(progress)}\n\ndata: ${JSON.stringify(result)}\n\n`);
    return undefined;
  });
  await using client = await connect(server.url, { eras: createEraCache() });
  const seen: CallEvent[] = [];
  await client.callTool("echo", echo, { onEvent: (event) => void seen.push(event) });
  expect(seen).toEqual([{ kind: "progress", progress: 1 }]);
});

test("the total time-out is enforced although progress keeps coming (typescript-sdk#2695)", async () => {
  const clock = createVirtualClock();
  const pipe = new FakePipe(
    modernScript({ first: ({ method }) => (method === "tools/call" ? "silence" : undefined) }),
  );
  const client = await connect(pipe.target, { clock });
  const options = { timeoutMs: 100, maxTotalMs: 1000, onEvent: () => {} };
  const failed = client.callTool("echo", echo, options).catch((error: unknown) => error);
  const progressToken = progressTokenOf(await pipe.heard("tools/call"));
  for (let progress = 1; progress <= 20; progress++) {
    pipe.send({ jsonrpc: "2.0", method: "notifications/progress", params: { progressToken, progress } });
    await clock.advance(50);
  }
  expect(await failed).toMatchObject({ name: "TimeoutError", kind: "total" });
  expect(clock.now()).toBe(1000);
});

test.each(["modern", "legacy"] as const)(
  "a stream that ends before its response fails the call at once (typescript-sdk#2739), %s",
  async (era) => {
    const script = era === "modern" ? modernScript() : legacyScript();
    const server = await FakeHttp.listen((request, response) => {
      if (request.verb !== "POST") return { status: 405 };
      if (request.message?.method !== "tools/call") return toReply(request, script(request.message!));
      startSse(response);
      response.end(": bye\n\n");
      return undefined;
    });
    onTestFinished(() => server[Symbol.asyncDispose]());
    await using client = await connect(server.url, { eras: createEraCache(), clock: createVirtualClock() });
    await expect(client.callTool("echo", echo)).rejects.toMatchObject({
      name: "ClosedError",
      delivery: "outcome_unknown",
    });
  },
);

test("an expired session is begun again, and the call made in the new one (typescript-sdk#1708)", async () => {
  let sessions = 0;
  let expired = "";
  await using server = await FakeHttp.listen((request) => {
    if (request.verb !== "POST") return { status: 405 };
    const { message, headers } = request;
    if (message?.method === "initialize") {
      const reply = toReply(request, legacyScript()(message));
      return {
        ...reply,
        headers: { "content-type": "application/json", "mcp-session-id": `s${++sessions}` },
      };
    }
    if (headers["mcp-session-id"] === expired) return { status: 404 };
    return toReply(request, legacyScript()(message!));
  });
  await using client = await connect(server.url, { revision: "2025-06-18" });
  await client.callTool("echo", echo);
  expired = "s1";
  expect(await client.callTool("echo", echo)).toMatchObject({ content: [{ type: "text" }] });
  const initializes = server.calls("initialize");
  expect(initializes).toHaveLength(2);
  expect(initializes[1]?.headers).not.toHaveProperty("mcp-session-id");
  expect(server.calls("tools/call").map(({ headers }) => headers["mcp-session-id"])).toEqual([
    "s1",
    "s1",
    "s2",
  ]);
});

test("a call its caller gave up is not reported as a time-out", async () => {
  const pipe = new FakePipe(
    modernScript({ first: ({ method }) => (method === "tools/call" ? "silence" : undefined) }),
  );
  const client = await connect(pipe.target);
  const controller = new AbortController();
  const reason = new Error("the user pressed escape");
  const failed = client
    .callTool("echo", echo, { signal: controller.signal })
    .catch((error: unknown) => error);
  await pipe.heard("tools/call");
  controller.abort(reason);
  expect(await failed).toMatchObject({ name: "AbortedError", code: "client.aborted", cause: reason });
});
