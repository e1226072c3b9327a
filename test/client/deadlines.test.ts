import { describe, expect, onTestFinished, test } from "vitest";
import type { Client } from "../../packages/client/src/client/client.ts";
import { connect, type ConnectOptions } from "../../packages/client/src/client/connect.ts";
import { createEraCache } from "../../packages/client/src/client/negotiate.ts";
import { AbortedError, TimeoutError } from "../../packages/core/src/errors/index.ts";
import type { LegacyRevision, ModernRevision } from "../../packages/core/src/mcp/revision.ts";
import { createVirtualClock, type VirtualClock } from "../../packages/junctor/src/testing/virtual-clock.ts";
import { FakePipe } from "../support/fake-pipe.ts";
import { legacyScript, modernScript } from "../support/fake-script.ts";
import { listen } from "../support/http-tools.ts";
import { progressTokenOf } from "../support/progress-token.ts";
import type { Message } from "../support/raw-http.ts";

/** A server whose tool says nothing by itself. */
async function meetSilent(
  options: ConnectOptions = {},
  script = modernScript,
): Promise<{ client: Client; pipe: FakePipe; clock: VirtualClock; progress: () => Promise<void> }> {
  const clock = createVirtualClock();
  const pipe = new FakePipe(
    script({ first: ({ method }) => (method === "tools/call" ? "silence" : undefined) }),
  );
  const client = await connect(pipe.target, { clock, ...options });
  let count = 0;
  const progress = async (): Promise<void> => {
    const progressToken = progressTokenOf(await pipe.heard("tools/call"));
    pipe.send({
      jsonrpc: "2.0",
      method: "notifications/progress",
      params: { progressToken, progress: ++count },
    });
    await clock.advance(0);
  };
  return { client, pipe, clock, progress };
}

const echo = { message: "" };
const failure = (call: Promise<unknown>): Promise<unknown> => call.catch((error: unknown) => error);

describe("the idle deadline", () => {
  test("ends a call on which nothing comes, and tells the server by the id of the request", async () => {
    const { client, pipe, clock } = await meetSilent({ timeoutMs: 5000 });
    const failed = failure(client.callTool("echo", echo));
    const { id } = await pipe.heard("tools/call");
    await clock.advance(4999);
    expect(pipe.methods).not.toContain("notifications/cancelled");
    await clock.advance(1);
    expect(await failed).toBeInstanceOf(TimeoutError);
    expect(await failed).toMatchObject({ kind: "idle", timeoutMs: 5000, delivery: "outcome_unknown" });
    const cancelled = await pipe.heard("notifications/cancelled");
    expect(cancelled.params).toMatchObject({ requestId: id });
    expect(clock.sleeping).toBe(0);
  });

  test("is moved on by progress", async () => {
    const { client, pipe, clock, progress } = await meetSilent();
    const failed = failure(client.callTool("echo", echo, { timeoutMs: 1000, onEvent: () => {} }));
    for (let step = 0; step < 5; step++) {
      await progress();
      await clock.advance(900);
    }
    expect(pipe.methods).not.toContain("notifications/cancelled");
    await clock.advance(100);
    expect(await failed).toMatchObject({ kind: "idle" });
  });

  test("may differ from call to call", async () => {
    const { client, pipe, clock } = await meetSilent({ timeoutMs: 60_000 });
    const failed = failure(client.callTool("echo", echo, { timeoutMs: 10 }));
    await pipe.heard("tools/call");
    await clock.advance(10);
    expect(await failed).toMatchObject({ kind: "idle", timeoutMs: 10 });
  });
});

describe("the total deadline", () => {
  test("ends a call although progress keeps coming", async () => {
    const { client, clock, progress } = await meetSilent();
    const options = { timeoutMs: 1000, maxTotalMs: 3000, onEvent: () => {} };
    const failed = failure(client.callTool("echo", echo, options));
    for (let step = 0; step < 5; step++) {
      await progress();
      await clock.advance(600);
    }
    expect(await failed).toMatchObject({ name: "TimeoutError", kind: "total", timeoutMs: 3000 });
    expect(clock.sleeping).toBe(0);
  });
});

describe("a call that ends before it was sent says so", () => {
  test("when the caller gave it up beforehand", async () => {
    const { client, pipe } = await meetSilent();
    const failed = await failure(client.callTool("echo", echo, { signal: AbortSignal.abort("no") }));
    expect(failed).toBeInstanceOf(AbortedError);
    expect(failed).toMatchObject({ delivery: "not_sent", cause: "no" });
    expect(pipe.methods).not.toContain("tools/call");
  });

  test("when the list of tools did not come in time", async () => {
    const clock = createVirtualClock();
    const pipe = new FakePipe(
      modernScript({ first: ({ method }) => (method === "tools/list" ? "silence" : undefined) }),
    );
    const client = await connect(pipe.target, { clock, timeoutMs: 60_000 });
    const failed = failure(client.callTool("echo", echo, { timeoutMs: 1000 }));
    await pipe.heard("tools/list");
    await clock.advance(1000);
    expect(await failed).toMatchObject({ name: "TimeoutError", delivery: "not_sent" });
  });
});

test("aborting, idling, running out of time and losing the server are different errors", async () => {
  const { client, pipe, clock } = await meetSilent();
  const controller = new AbortController();
  const heard = (count: number): Promise<Message> =>
    pipe.until(() => pipe.methods.filter((method) => method === "tools/call").length >= count);
  const aborted = failure(client.callTool("echo", echo, { signal: controller.signal }));
  await heard(1);
  controller.abort(new Error("changed my mind"));
  const idle = failure(client.callTool("echo", echo, { timeoutMs: 10 }));
  const total = failure(client.callTool("echo", echo, { maxTotalMs: 20 }));
  const closed = failure(client.callTool("echo", echo));
  await heard(4);
  await clock.advance(20);
  pipe.end();
  const errors = (await Promise.all([aborted, idle, total, closed])) as { name: string; kind?: string }[];
  expect(errors.map(({ name, kind }) => [name, kind])).toEqual([
    ["AbortedError", undefined],
    ["TimeoutError", "idle"],
    ["TimeoutError", "total"],
    ["ClosedError", undefined],
  ]);
});

test("a listener that throws fails nothing", async () => {
  const warnings: string[] = [];
  const { client, pipe, progress } = await meetSilent({ onWarning: (text) => void warnings.push(text) });
  const onEvent = (): never => {
    throw new Error("clumsy");
  };
  const called = client.callTool("echo", echo, { onEvent });
  await progress();
  const { id } = await pipe.heard("tools/call");
  pipe.send({ jsonrpc: "2.0", id, result: { resultType: "complete", content: [] } });
  expect(await called).toEqual({ content: [] });
  expect(warnings).toEqual([expect.stringContaining("clumsy")]);
});

describe.each<LegacyRevision | ModernRevision>(["2024-11-05", "2025-11-25", "2026-07-28"])(
  "a call given up in %s",
  (revision) => {
    test.each(["HTTP", "a pipe"])("stops the tool on the server, over %s", async (way) => {
      const server = await listen();
      onTestFinished(() => server[Symbol.asyncDispose]());
      const target = way === "HTTP" ? `http://127.0.0.1:${server.port}/mcp` : { server: server.server };
      await using client = await connect(target, { revision, eras: createEraCache() });
      const controller = new AbortController();
      const onEvent = (): void => controller.abort();
      const called = client.callTool("wait", { key: "k" }, { signal: controller.signal, onEvent });
      await expect(called).rejects.toThrow(AbortedError);
      await expect.poll(() => server.waits.get("k")).toBe("aborted");
      // And the way to the server is as good as before.
      expect(await client.callTool("echo", { message: "still here" })).toMatchObject({
        content: [{ text: "still here" }],
      });
    });
  },
);

test.each([legacyScript, modernScript])(
  "giving up a call on a pipe names our id, in either era",
  async (script) => {
    const { client, pipe } = await meetSilent({}, script);
    const controller = new AbortController();
    const failed = failure(client.callTool("echo", echo, { signal: controller.signal }));
    const { id } = await pipe.heard("tools/call");
    controller.abort();
    await failed;
    expect((await pipe.heard("notifications/cancelled")).params).toMatchObject({ requestId: id });
  },
);
