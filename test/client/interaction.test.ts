import { describe, expect, onTestFinished, test } from "vitest";
import { connect, type ConnectOptions } from "../../packages/client/src/client/connect.ts";
import { createEraCache } from "../../packages/client/src/client/negotiate.ts";
import { legacyRevisions, modernRevisions, type Revision } from "../../packages/core/src/mcp/revision.ts";
import { createCallContext } from "../../packages/core/src/provider/context.ts";
import { createVirtualClock } from "../../packages/junctor/src/testing/virtual-clock.ts";
import { FakePipe, type Reaction } from "../support/fake-pipe.ts";
import { legacyScript, modernScript, text } from "../support/fake-script.ts";
import { listen } from "../support/http-tools.ts";
import type { Message } from "../support/raw-http.ts";
import { callTool } from "../support/use-provider.ts";

const handlers: NonNullable<ConnectOptions["handlers"]> = {
  elicit: () => ({ action: "accept", content: { name: "Ada" } }),
  sample: () => ({ role: "assistant", model: "m-1", content: { type: "text", text: "roses" } }),
  roots: () => [{ uri: "file:///home" }],
};

const askName = {
  method: "elicitation/create",
  params: { mode: "form", message: "Name?", requestedSchema: { type: "object", properties: {} } },
};
const inputRequired = (more: object): Reaction => ({ result: { resultType: "input_required", ...more } });
const done: Reaction = { result: { resultType: "complete", ...text("done") } };
const called = ({ received }: FakePipe): readonly Message[] =>
  received.filter(({ method }) => method === "tools/call");
const echo = { message: "" };

describe.each<Revision>([...legacyRevisions, ...modernRevisions])("our server in %s", (revision) => {
  test.each(["HTTP", "memory"])("gets its questions answered over %s", async (way) => {
    const server = await listen();
    onTestFinished(() => server[Symbol.asyncDispose]());
    const target = way === "HTTP" ? `http://127.0.0.1:${server.port}/mcp` : { server: server.server };
    await using client = await connect(target, { revision, handlers, eras: createEraCache() });
    const hasForms = revision >= "2025-06-18";
    const greeted = await client.callTool("greet");
    if (hasForms) expect(greeted).toMatchObject({ content: [{ text: "Hello, Ada!" }] });
    else expect(greeted.isError).toBe(true);
    expect(await client.callTool("poem")).toMatchObject({ content: [{ text: "m-1 wrote it" }] });
    expect(await client.callTool("where")).toMatchObject({ content: [{ text: "file:///home" }] });
  });
});

describe("input_required", () => {
  test("is answered under the same keys, with the exact state, a new id and the same arguments", async () => {
    const state = 'opaque "state" \\ ü \u2028 🦊';
    const pipe = new FakePipe(
      modernScript({
        call: ({ inputResponses }) =>
          inputResponses === undefined
            ? inputRequired({
                inputRequests: { k1: askName, k2: { method: "roots/list" } },
                requestState: state,
              })
            : done,
      }),
    );
    const client = await connect(pipe.target, { handlers });
    expect(await client.callTool("echo", echo)).toEqual(text("done"));
    const [first, second] = called(pipe);
    expect(first?.id).not.toBe(second?.id);
    expect(first?.params).not.toHaveProperty("requestState");
    expect(second?.params).toMatchObject({
      name: "echo",
      arguments: echo,
      requestState: state,
      inputResponses: {
        k1: { action: "accept", content: { name: "Ada" } },
        k2: { roots: [{ uri: "file:///home" }] },
      },
    });
  });

  test("without a state is answered without one, and each round gives the answers of that round only", async () => {
    const rounds: Reaction[] = [
      inputRequired({ inputRequests: { a: askName } }),
      inputRequired({ inputRequests: { b: { method: "roots/list" } } }),
      done,
    ];
    const pipe = new FakePipe(modernScript({ call: () => rounds.shift() }));
    const client = await connect(pipe.target, { handlers });
    await client.callTool("echo", echo);
    const sent = called(pipe).map(({ params }) => params);
    expect(sent.map((params) => Object.keys((params?.["inputResponses"] as object) ?? {}))).toEqual([
      [],
      ["a"],
      ["b"],
    ]);
    for (const params of sent) expect(params).not.toHaveProperty("requestState");
  });

  test("is given up after a number of rounds", async () => {
    const pipe = new FakePipe(modernScript({ call: () => inputRequired({ inputRequests: { a: askName } }) }));
    const client = await connect(pipe.target, { handlers, maxRounds: 3 });
    await expect(client.callTool("echo", echo)).rejects.toThrow(/more than 3 times/);
    expect(called(pipe)).toHaveLength(4);
  });

  test("with a state alone is asked again after a pause", async () => {
    const clock = createVirtualClock();
    let rounds = 0;
    const pipe = new FakePipe(
      modernScript({ call: () => (rounds++ < 2 ? inputRequired({ requestState: `s${rounds}` }) : done) }),
    );
    const client = await connect(pipe.target, { clock });
    const result = client.callTool("echo", echo);
    await pipe.heard("tools/call");
    await clock.advance(249);
    expect(called(pipe)).toHaveLength(1);
    await clock.advance(1);
    await clock.advance(250);
    expect(await result).toEqual(text("done"));
    expect(called(pipe).map(({ params }) => params?.["requestState"])).toEqual([undefined, "s1", "s2"]);
  });

  test("for what the client does not offer fails the call, and it is not tried again", async () => {
    const pipe = new FakePipe(modernScript({ call: () => inputRequired({ inputRequests: { a: askName } }) }));
    const client = await connect(pipe.target, { handlers: { roots: () => [] } });
    await expect(client.callTool("echo", echo)).rejects.toThrow(/takes no form elicitation/);
    expect(called(pipe)).toHaveLength(1);
  });

  test("for something that does not exist fails the call", async () => {
    const pipe = new FakePipe(
      modernScript({ call: () => inputRequired({ inputRequests: { a: { method: "tea/brew" } } }) }),
    );
    const client = await connect(pipe.target, { handlers });
    await expect(client.callTool("echo", echo)).rejects.toThrow(/tea\/brew/);
  });

  test("is passed on to code that composes providers", async () => {
    const pipe = new FakePipe(
      modernScript({ call: () => inputRequired({ inputRequests: { a: askName }, requestState: "s" }) }),
    );
    const client = await connect(pipe.target);
    const outcome = await callTool(
      client,
      "echo",
      {},
      createCallContext({ capabilities: { elicitation: { form: {} } } }),
    );
    expect(outcome).toEqual({ kind: "input_required", asks: { a: askName }, state: "s" });
    const { params } = await pipe.heard("tools/call");
    expect(params?.["_meta"]).toMatchObject({
      "io.modelcontextprotocol/clientCapabilities": { elicitation: { form: {} } },
    });
  });
});

describe("the idle deadline stands still while the user is asked", () => {
  test("in the modern era", async () => {
    const clock = createVirtualClock();
    let answer: (value: { action: "decline" }) => void = () => {};
    const elicit = (): Promise<{ action: "decline" }> => new Promise((resolve) => (answer = resolve));
    let rounds = 0;
    const pipe = new FakePipe(
      modernScript({
        call: () => (rounds++ === 0 ? inputRequired({ inputRequests: { a: askName } }) : done),
      }),
    );
    const client = await connect(pipe.target, { clock, handlers: { elicit }, timeoutMs: 1000 });
    const result = client.callTool("echo", echo);
    await pipe.heard("tools/call");
    await clock.advance(50_000);
    answer({ action: "decline" });
    expect(await result).toEqual(text("done"));
  });

  test("in the legacy era", async () => {
    const clock = createVirtualClock();
    let answer: (value: { action: "decline" }) => void = () => {};
    const elicit = (): Promise<{ action: "decline" }> => new Promise((resolve) => (answer = resolve));
    const pipe = new FakePipe((message) => {
      if (message.method === "tools/call") {
        pipe.send({ jsonrpc: "2.0", id: "q1", ...askName });
        return undefined;
      }
      if (message.id === "q1") pipe.send({ jsonrpc: "2.0", id: called(pipe)[0]?.id, result: text("done") });
      return message.method === undefined ? undefined : legacyScript()(message);
    });
    const client = await connect(pipe.target, { clock, handlers: { elicit }, timeoutMs: 1000 });
    const result = client.callTool("echo", echo);
    await pipe.heard("tools/call");
    await clock.advance(50_000);
    answer({ action: "decline" });
    expect(await result).toEqual(text("done"));
    expect(await pipe.until(({ id }) => id === "q1")).toMatchObject({ result: { action: "decline" } });
  });
});

test("giving a call up aborts the question to its user", async () => {
  let asked: AbortSignal | undefined;
  const elicit = (_: object, signal: AbortSignal): Promise<never> => {
    asked = signal;
    return new Promise(() => {});
  };
  const pipe = new FakePipe(modernScript({ call: () => inputRequired({ inputRequests: { a: askName } }) }));
  const client = await connect(pipe.target, { handlers: { elicit } });
  const controller = new AbortController();
  const failed = client
    .callTool("echo", echo, { signal: controller.signal })
    .catch((error: unknown) => error);
  await expect.poll(() => asked).toBeDefined();
  controller.abort();
  expect(await failed).toMatchObject({ name: "AbortedError" });
  expect(asked?.aborted).toBe(true);
});

describe("a legacy server", () => {
  test("of 2025-03-26 may put its messages in one array", async () => {
    const pipe = new FakePipe((message) => {
      if (message.method !== "tools/call")
        return message.method === undefined ? undefined : legacyScript()(message);
      const result = { jsonrpc: "2.0", id: message.id, result: text("in a batch") };
      pipe.send([{ jsonrpc: "2.0", id: 7, method: "ping" }, result]);
      return undefined;
    });
    const client = await connect(pipe.target, { revision: "2025-03-26" });
    expect(await client.callTool("echo", echo)).toEqual(text("in a batch"));
    expect(await pipe.until(({ id, method }) => id === 7 && method === undefined)).toMatchObject({
      result: {},
    });
  });

  test.each<[string, object, object]>([
    ["ping", { method: "ping" }, { result: {} }],
    ["an unknown request", { method: "tea/brew" }, { error: { code: -32601 } }],
    ["a kind of form nobody declared", { ...askName, params: { mode: "url" } }, { error: { code: -32602 } }],
    ["sampling nobody declared", { method: "sampling/createMessage" }, { error: { code: -32601 } }],
  ])("that sends %s gets its answer", async (_, request, answer) => {
    const pipe = new FakePipe((message) =>
      message.method === undefined ? undefined : legacyScript()(message),
    );
    await connect(pipe.target, { handlers: { elicit: () => ({ action: "cancel" }) } });
    pipe.send({ jsonrpc: "2.0", id: 7, ...request });
    expect(await pipe.until(({ id, method }) => id === 7 && method === undefined)).toMatchObject(answer);
  });
});

test("capabilities are declared for the handlers that exist, in either era", async () => {
  const legacy = new FakePipe(legacyScript());
  await connect(legacy.target, { handlers });
  expect((await legacy.heard("initialize")).params).toMatchObject({
    capabilities: { elicitation: { form: {} }, sampling: {}, roots: {} },
  });
  const modern = new FakePipe(modernScript());
  await connect(modern.target, { handlers: { elicitUrl: () => ({ action: "cancel" }) } });
  expect((await modern.heard("server/discover")).params?.["_meta"]).toMatchObject({
    "io.modelcontextprotocol/clientCapabilities": { elicitation: { url: {} } },
  });
});

test("a modern server that sends a request gets no answer", async () => {
  let asked = 0;
  const pipe = new FakePipe((message) =>
    message.method === undefined ? undefined : modernScript()(message),
  );
  const client = await connect(pipe.target, { handlers: { roots: () => [{ uri: `file:///${++asked}` }] } });
  pipe.send({ jsonrpc: "2.0", id: 9, method: "roots/list" });
  await client.callTool("echo", echo);
  expect(asked).toBe(0);
  expect(pipe.methods).not.toContain(undefined);
});
