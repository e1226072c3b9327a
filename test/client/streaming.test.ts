import { describe, expect, onTestFinished, test } from "vitest";
import { connect } from "../../packages/client/src/client/connect.ts";
import { createEraCache } from "../../packages/client/src/client/negotiate.ts";
import type { CallPart } from "../../packages/client/src/client/tool-calls.ts";
import { legacyRevisions, modernRevisions, type Revision } from "../../packages/core/src/mcp/revision.ts";
import type { CallEvent } from "../../packages/core/src/provider/context.ts";
import { FakePipe } from "../support/fake-pipe.ts";
import { modernScript } from "../support/fake-script.ts";
import { listen } from "../support/http-tools.ts";
import { progressTokenOf } from "../support/progress-token.ts";

describe.each<Revision>([...legacyRevisions, ...modernRevisions])("a streamed call in %s", (revision) => {
  test.each(["HTTP", "memory"])(
    "gives each part when it comes, and the result last, over %s",
    async (way) => {
      const server = await listen();
      onTestFinished(() => server[Symbol.asyncDispose]());
      const target = way === "HTTP" ? `http://127.0.0.1:${server.port}/mcp` : { server: server.server };
      await using client = await connect(target, { revision, eras: createEraCache() });
      const parts: CallPart[] = [];
      server.steps.allow();
      for await (const part of client.streamTool("recite")) {
        parts.push(part);
        // The next word is spoken only because this one was heard.
        server.steps.allow();
      }
      const words = parts.flatMap((part) => (part.kind === "progress" ? [part.message] : []));
      expect(words).toEqual(["one ", "two ", "three"]);
      expect(parts.at(-1)).toMatchObject({ kind: "result", result: { content: [{ type: "text" }] } });
      expect(parts).toHaveLength(4);
    },
  );

  test("that is left early is given up", async () => {
    const server = await listen();
    onTestFinished(() => server[Symbol.asyncDispose]());
    await using client = await connect(`http://127.0.0.1:${server.port}/mcp`, {
      revision,
      eras: createEraCache(),
    });
    for await (const part of client.streamTool("wait", { key: "k" })) {
      expect(part.kind).toBe("progress");
      break;
    }
    await expect.poll(() => server.waits.get("k")).toBe("aborted");
  });
});

test("a streamed call that fails rejects after what came before it", async () => {
  const pipe = new FakePipe((message) => {
    if (message.method !== "tools/call") return modernScript()(message);
    const progressToken = progressTokenOf(message);
    pipe.send(
      {
        jsonrpc: "2.0",
        method: "notifications/progress",
        params: { progressToken, progress: 1, message: "half" },
      },
      { jsonrpc: "2.0", id: message.id, error: { code: -32603, message: "broken" } },
    );
    return undefined;
  });
  const client = await connect(pipe.target);
  const parts: CallPart[] = [];
  const read = async (): Promise<void> => {
    for await (const part of client.streamTool("echo", { message: "" })) parts.push(part);
  };
  await expect(read()).rejects.toMatchObject({ rpcCode: -32603 });
  expect(parts).toEqual([{ kind: "progress", progress: 1, message: "half" }]);
});

test("a burst is delivered whole and in order", async () => {
  await using server = await listen();
  await using client = await connect(`http://127.0.0.1:${server.port}/mcp`);
  const seen: (number | undefined)[] = [];
  const onEvent = (event: CallEvent): void => {
    if (event.kind === "progress") seen.push(event.progress);
  };
  await client.callTool("burst", { count: 2000 }, { onEvent });
  expect(seen).toEqual(Array.from({ length: 2000 }, (_, index) => index + 1));
});

test("progress is asked for only if the program listens", async () => {
  const pipe = new FakePipe(modernScript());
  const client = await connect(pipe.target);
  await client.callTool("echo", { message: "" });
  expect((await pipe.heard("tools/call")).params?.["_meta"]).not.toHaveProperty("progressToken");
});

describe("the log of a call", () => {
  test.each(["HTTP", "memory"])("comes with its events, from the level asked for, over %s", async (way) => {
    await using server = await listen();
    const target = way === "HTTP" ? `http://127.0.0.1:${server.port}/mcp` : { server: server.server };
    await using client = await connect(target, { eras: createEraCache() });
    const seen: CallEvent[] = [];
    await client.callTool("chat", {}, { logLevel: "warning", onEvent: (event) => void seen.push(event) });
    expect(seen).toMatchObject([{ kind: "log", level: "error", data: "loud" }]);
  });

  test("goes to the client where it does not say which call it belongs to", async () => {
    const logs: unknown[] = [];
    const pipe = new FakePipe(modernScript());
    const client = await connect(pipe.target, { onLog: (event) => logs.push(event) });
    pipe.send({
      jsonrpc: "2.0",
      method: "notifications/message",
      params: { level: "info", data: { a: 1 }, logger: "x" },
    });
    pipe.send({ jsonrpc: "2.0", method: "notifications/message", params: { level: "shouting", data: 1 } });
    await client.callTool("echo", { message: "" });
    expect(logs).toEqual([{ kind: "log", level: "info", data: { a: 1 }, logger: "x" }]);
  });

  test("comes with its events while a list is on its way", async () => {
    const log = { jsonrpc: "2.0", method: "notifications/message", params: { level: "info", data: "begun" } };
    const pipe = new FakePipe(
      modernScript({
        first: ({ method }) => {
          if (method === "tools/call") pipe.send(log);
          return method === "tools/list" ? "silence" : undefined;
        },
      }),
    );
    const client = await connect(pipe.target);
    client.listTools().catch(() => {});
    await pipe.heard("tools/list");
    const seen: CallEvent[] = [];
    const onEvent = (event: CallEvent): void => void seen.push(event);
    await client.callTool("echo", { message: "" }, { logLevel: "info", onEvent, validate: false });
    expect(seen).toEqual([{ kind: "log", level: "info", data: "begun" }]);
  });
});
