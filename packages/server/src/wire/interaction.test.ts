import { describe, expect, test } from "vitest";
import { type Conversation, talkModern } from "../../../../test/support/conversation.ts";
import { elicit, elicitUrl, listRoots, sample } from "../../../core/src/mcp/question.ts";
import { createSeal } from "../../../core/src/mcp/seal.ts";
import type { Server } from "../../../core/src/mcp/server.ts";
import { inputRequired } from "../../../core/src/provider/content.ts";
import { createVirtualClock } from "../../../junctor/src/testing/virtual-clock.ts";
import { createPromptRegistry } from "../registry/prompts.ts";
import { createRegistry, type Registry } from "../registry/registry.ts";
import { createResourceRegistry } from "../registry/resources.ts";
import { createServer, type ServerOptions } from "./server.ts";

const info = { name: "test-server", version: "1" };
const everything = { elicitation: { form: {}, url: {} }, sampling: { tools: {} }, roots: {} };
const secret = "a secret of at least thirty-two characters";
const anything = { type: "object" } as const;

interface Asked {
  readonly resultType: string;
  readonly inputRequests?: { readonly [key: string]: { readonly method: string; readonly params?: object } };
  readonly requestState?: string;
  readonly content?: readonly { readonly text: string }[];
}

/** Tools that ask: once, round after round with a state, for everything, and not at all but later. */
function createAsking(): Registry {
  const registry = createRegistry({ resources: createResourceRegistry(), prompts: createPromptRegistry() });
  registry.register("greet", { input: anything }, (_, { answers }) => {
    const answer = answers.elicited("name");
    if (answer === undefined) return inputRequired({ name: elicit("Name?", { name: { type: "string" } }) });
    return answer.action === "accept" ? `Hello ${String(answer.content["name"])}` : answer.action;
  });
  for (const name of ["steps", "twin"]) {
    registry.register(name, { input: anything }, (_, { answers, state }) => {
      const step = (state as number | undefined) ?? 0;
      if (step === 3) {
        const given = [0, 1, 2].map((n) => answers.elicited(`step${n}`));
        return JSON.stringify(given.map((answer) => answer?.action === "accept" && answer.content["n"]));
      }
      return inputRequired({ [`step${step}`]: elicit("Next?", { n: { type: "number" } }) }, step + 1);
    });
  }
  registry.register("later", {}, (_, { state }) => (state === "seen" ? "now" : inputRequired({}, "seen")));
  return registry;
}

function createAskingServer(options: ServerOptions = {}): Server {
  return createServer(createAsking(), info, options);
}

function talkWillingly(server = createAskingServer(), caller?: string): Conversation {
  return talkModern(server, { capabilities: everything, ...(caller === undefined ? {} : { caller }) });
}

const accept = (content: object): object => ({ action: "accept", content });
const call = (client: Conversation, params: { readonly [key: string]: unknown }): Promise<Asked> =>
  client.result<Asked>("tools/call", params);

/** The state a tool sends along with its first question. */
async function stateOf(client: Conversation, params: { readonly [key: string]: unknown }): Promise<string> {
  const { requestState } = await call(client, params);
  expect(requestState).toBeTypeOf("string");
  return requestState ?? "";
}

describe("a tool that asks a modern client", () => {
  test("ends its call with the question, and is called again with the answer", async () => {
    await using client = talkWillingly();
    const asked = await call(client, { name: "greet" });
    expect(asked).toEqual({
      resultType: "input_required",
      inputRequests: {
        name: {
          method: "elicitation/create",
          params: {
            message: "Name?",
            requestedSchema: { type: "object", properties: { name: { type: "string" } } },
          },
        },
      },
      _meta: { "io.modelcontextprotocol/serverInfo": info },
    });
    const inputResponses = { name: accept({ name: "Ada" }) };
    await expect(call(client, { name: "greet", inputResponses })).resolves.toMatchObject({
      resultType: "complete",
      content: [{ text: "Hello Ada" }],
    });
  });

  test.each(["decline", "cancel"])("is told when the user says %s", async (action) => {
    await using client = talkWillingly();
    const result = await call(client, { name: "greet", inputResponses: { name: { action } } });
    expect(result.content).toMatchObject([{ text: action }]);
  });

  test("gets the answers of all rounds, though each retry carries only the last", async () => {
    await using client = talkWillingly();
    let result = await call(client, { name: "steps" });
    for (let step = 0; step < 3; step++) {
      expect(Object.keys(result.inputRequests ?? {})).toEqual([`step${step}`]);
      const inputResponses = { [`step${step}`]: accept({ n: step * 10 }), unheardOf: accept({}) };
      result = await call(client, { name: "steps", inputResponses, requestState: result.requestState });
    }
    expect(result.content).toMatchObject([{ text: "[0,10,20]" }]);
  });

  test("may ask nothing and be called again later", async () => {
    await using client = talkWillingly();
    const { requestState, ...asked } = await call(client, { name: "later" });
    expect(asked).not.toHaveProperty("inputRequests");
    await expect(call(client, { name: "later", requestState })).resolves.toMatchObject({
      content: [{ text: "now" }],
    });
  });

  test.each([7, "x", null, [], {}, { action: "approve" }, { method: "x", result: {} }])(
    "asks again when the answer is %j",
    async (name) => {
      await using client = talkWillingly();
      await expect(call(client, { name: "greet", inputResponses: { name } })).resolves.toMatchObject({
        resultType: "input_required",
      });
    },
  );

  test.each([7, "x", null, []])("refuses the answers %j with -32602", async (inputResponses) => {
    await using client = talkWillingly();
    await expect(client.error("tools/call", { name: "greet", inputResponses })).resolves.toMatchObject({
      code: -32602,
    });
  });

  test.each(["__proto__", "constructor", "toString"])(
    "is not confused by an answer called %s",
    async (key) => {
      await using client = talkWillingly();
      const params = `{"name":"greet","inputResponses":{"${key}":{"action":"accept","content":{}}},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}`;
      client.wire.send(`{"jsonrpc":"2.0","id":"x","method":"tools/call","params":${params}}`);
      await expect(client.wire.take()).resolves.toMatchObject({ result: { resultType: "input_required" } });
    },
  );
});

describe("the state of a tool that asked", () => {
  const retry = { inputResponses: { step0: accept({ n: 1 }) } };
  const fixed = {
    code: -32602,
    message: "Invalid params: requestState is invalid or expired; make the request again, without it",
  };

  test("opens nothing when any of its characters is changed, left out or added", async () => {
    await using client = talkWillingly();
    const state = await stateOf(client, { name: "steps" });
    const tampered = Array.from(state).flatMap((character, index) => [
      state.slice(0, index) + (character === "A" ? "B" : "A") + state.slice(index + 1),
      ...(index % 16 === 0 ? [state.slice(0, index) + state.slice(index + 1)] : []),
    ]);
    for (const requestState of [...tampered, `${state}A`, `${state}=`, "", "v1."]) {
      await expect(client.error("tools/call", { name: "steps", requestState, ...retry })).resolves.toEqual(
        fixed,
      );
    }
    await expect(call(client, { name: "steps", requestState: state, ...retry })).resolves.toHaveProperty(
      "inputRequests.step1",
    );
  });

  test.each([7, null, {}, ["v1."], true])("must not be %j", async (requestState) => {
    await using client = talkWillingly();
    await expect(client.error("tools/call", { name: "steps", requestState, ...retry })).resolves.toEqual(
      fixed,
    );
  });

  test.each([
    ["another tool", { name: "twin" }],
    ["other arguments", { name: "steps", arguments: { a: 2 } }],
    ["no arguments", { name: "steps", arguments: undefined }],
    ["more arguments", { name: "steps", arguments: { a: 1, b: 1 } }],
  ])("is not good for %s", async (_, changed) => {
    await using client = talkWillingly();
    const params = { name: "steps", arguments: { a: 1 } };
    const requestState = await stateOf(client, params);
    await expect(
      client.error("tools/call", { ...params, ...changed, requestState, ...retry }),
    ).resolves.toEqual(fixed);
  });

  test("is not good for another method", async () => {
    const prompts = createPromptRegistry();
    prompts.register("steps", {}, () => "never");
    const registry = createRegistry({ prompts });
    registry.register("steps", {}, () => inputRequired({}, 1));
    await using client = talkWillingly(createServer(registry, info));
    const requestState = await stateOf(client, { name: "steps" });
    await expect(client.error("prompts/get", { name: "steps", requestState })).resolves.toEqual(fixed);
  });

  test("is not good for another caller, nor for one who is not known", async () => {
    const server = createAskingServer();
    await using alice = talkWillingly(server, "alice");
    await using bob = talkWillingly(server, "bob");
    await using nobody = talkWillingly(server);
    const requestState = await stateOf(alice, { name: "steps" });
    const params = { name: "steps", requestState, ...retry };
    await expect(bob.error("tools/call", params)).resolves.toEqual(fixed);
    await expect(nobody.error("tools/call", params)).resolves.toEqual(fixed);
    await expect(call(alice, params)).resolves.toMatchObject({ resultType: "input_required" });
  });

  test("is good until its time is over", async () => {
    let now = 0;
    const seal = createSeal({ secret, now: () => now });
    await using client = talkWillingly(createAskingServer({ seal, stateTtlMs: 1000 }));
    const params = { name: "steps", requestState: await stateOf(client, { name: "steps" }), ...retry };
    now = 999;
    await expect(call(client, params)).resolves.toMatchObject({ resultType: "input_required" });
    now = 1000;
    await expect(client.error("tools/call", params)).resolves.toEqual(fixed);
  });

  test("is good until its time is over by the clock of the server", async () => {
    const clock = createVirtualClock(1_000_000);
    await using client = talkWillingly(createAskingServer({ clock, stateTtlMs: 1000 }));
    const params = { name: "steps", requestState: await stateOf(client, { name: "steps" }), ...retry };
    await clock.advance(999);
    await expect(call(client, params)).resolves.toMatchObject({ resultType: "input_required" });
    await clock.advance(1);
    await expect(client.error("tools/call", params)).resolves.toEqual(fixed);
  });

  test("is good for another server with the same secret, and for no other", async () => {
    await using one = talkWillingly(createAskingServer({ seal: createSeal({ secret }) }));
    await using twin = talkWillingly(createAskingServer({ seal: createSeal({ secret }) }));
    await using stranger = talkWillingly();
    const params = { name: "steps", requestState: await stateOf(one, { name: "steps" }), ...retry };
    await expect(call(twin, params)).resolves.toMatchObject({ resultType: "input_required" });
    await expect(stranger.error("tools/call", params)).resolves.toEqual(fixed);
  });

  test("cannot be read", async () => {
    const registry = createRegistry();
    registry.register("ask", {}, () => inputRequired({}, "the-hidden-word"));
    await using client = talkWillingly(createServer(registry, info));
    const state = await stateOf(client, { name: "ask" });
    expect(Buffer.from(state.slice(3), "base64url").toString("latin1")).not.toContain("hidden");
  });
});

describe("what a client did not say it can be asked", () => {
  const asks = {
    form: elicit("Name?", { name: { type: "string" } }),
    page: elicitUrl("Sign in", "https://example.com"),
    text: sample({ messages: [], maxTokens: 1 }),
    tools: sample({ messages: [], maxTokens: 1, tools: [] }),
    roots: listRoots(),
  };

  function createAsker(keys: readonly (keyof typeof asks)[]): Server {
    const registry = createRegistry();
    registry.register("ask", {}, () =>
      inputRequired(Object.fromEntries(keys.map((key) => [key, asks[key]]))),
    );
    return createServer(registry, info);
  }

  test.each([
    [["form"], {}, { elicitation: { form: {} } }],
    [["form"], { elicitation: { url: {} } }, { elicitation: { form: {} } }],
    [["form"], { elicitation: null }, { elicitation: { form: {} } }],
    [["form"], { elicitation: true }, { elicitation: { form: {} } }],
    [["page"], { elicitation: {} }, { elicitation: { url: {} } }],
    [["form", "page"], {}, { elicitation: { form: {}, url: {} } }],
    [["text"], {}, { sampling: {} }],
    [["text"], { sampling: null }, { sampling: {} }],
    [["tools"], { sampling: {} }, { sampling: { tools: {} } }],
    [["roots"], { sampling: {} }, { roots: {} }],
    [["form", "text", "roots"], { elicitation: {} }, { sampling: {}, roots: {} }],
  ] as const)("%j of %j is refused with -32021 and what is required", async (keys, declared, required) => {
    await using client = talkModern(createAsker(keys), { capabilities: declared as never });
    await expect(client.error("tools/call", { name: "ask" })).resolves.toMatchObject({
      code: -32021,
      data: { requiredCapabilities: required },
    });
  });

  test.each([
    [["form"], { elicitation: {} }],
    [["form"], { elicitation: { form: {} } }],
    [["page"], { elicitation: { url: {} } }],
    [["text"], { sampling: {} }],
    [["tools"], { sampling: { tools: {} } }],
    [["roots"], { roots: {} }],
  ] as const)("%j of %j is asked", async (keys, capabilities) => {
    await using client = talkModern(createAsker(keys), { capabilities });
    const { inputRequests } = await call(client, { name: "ask" });
    expect(Object.keys(inputRequests ?? {})).toEqual(keys);
  });
});

describe("prompts and resources that ask", () => {
  test("end with the question and complete with the answer, which is not for keeping", async () => {
    const resources = createResourceRegistry();
    const prompts = createPromptRegistry();
    const ask = inputRequired({ ok: elicit("Really?", {}) });
    resources.register("x:y", { name: "y" }, ({ answers }) => answers.elicited("ok")?.action ?? ask);
    prompts.register("p", {}, (_, { answers }) => answers.elicited("ok")?.action ?? ask);
    const registry = createRegistry({
      resources,
      prompts,
      cacheHints: { ttlMs: 60_000, cacheScope: "public" },
    });
    await using client = talkWillingly(createServer(registry, info));
    const inputResponses = { ok: accept({}) };
    for (const [method, params] of [
      ["prompts/get", { name: "p" }],
      ["resources/read", { uri: "x:y" }],
    ] as const) {
      const asked = await client.result(method, params);
      expect(asked).toMatchObject({ resultType: "input_required" });
      expect(asked).not.toHaveProperty("ttlMs");
      await expect(client.result(method, { ...params, inputResponses })).resolves.toMatchObject({
        resultType: "complete",
      });
    }
    await expect(client.result("resources/read", { uri: "x:y", inputResponses })).resolves.toMatchObject({
      ttlMs: 0,
      cacheScope: "private",
    });
  });
});
