import { describe, expect, test } from "vitest";
import { type Conversation, talkLegacy } from "../../../../test/support/conversation.ts";
import { toProvider } from "../../../../test/support/use-provider.ts";
import type { Frame } from "../../../../test/support/wire-schema.ts";
import { UpstreamError } from "../../../core/src/errors/index.ts";
import { elicit, elicitUrl, listRoots, sample } from "../../../core/src/mcp/question.ts";
import { type LegacyRevision, legacyRevisions } from "../../../core/src/mcp/revision.ts";
import type { Server } from "../../../core/src/mcp/server.ts";
import type { Question } from "../../../core/src/mcp/types.ts";
import { inputRequired } from "../../../core/src/provider/content.ts";
import { createVirtualClock } from "../../../junctor/src/testing/virtual-clock.ts";
import type { ToolHandler } from "../registry/event.ts";
import { createPromptRegistry } from "../registry/prompts.ts";
import { createRegistry } from "../registry/registry.ts";
import { createServer, type ServerOptions } from "./server.ts";

const info = { name: "test-server", version: "1" };
const everything = { elicitation: { form: {}, url: {} }, sampling: { tools: {} }, roots: {} };

function createToolServer(handler: ToolHandler<unknown>, options: ServerOptions = {}): Server {
  const registry = createRegistry();
  registry.register("tool", { input: { type: "object" } }, handler);
  return createServer(registry, info, options);
}

const greet: ToolHandler<unknown> = (_, { answers }) => {
  const answer = answers.elicited("name");
  if (answer === undefined) return inputRequired({ name: elicit("Name?", { name: { type: "string" } }) });
  return answer.action === "accept" ? `Hello ${String(answer.content["name"])}` : answer.action;
};

/** The next request of the server. */
function asked(client: Conversation, method?: string): Promise<Frame> {
  return client.wire.take(
    (frame) =>
      frame.method !== undefined && frame.id !== undefined && (method ?? frame.method) === frame.method,
  );
}

function answer(client: Conversation, { id }: Frame, result: object): void {
  client.wire.send({ jsonrpc: "2.0", id, result });
}

function refuse(client: Conversation, { id }: Frame, code = -1): void {
  client.wire.send({ jsonrpc: "2.0", id, error: { code, message: "The user said no" } });
}

const textOf = (result: unknown): unknown => (result as { content: { text: string }[] }).content[0]?.text;

function talkWillingly(server: Server, revision: LegacyRevision = "2025-11-25"): Promise<Conversation> {
  return talkLegacy(server, revision, { capabilities: everything });
}

describe("a tool that asks a legacy client", () => {
  test.each(["2025-06-18", "2025-11-25"] as const)(
    "asks by a request of its own in %s, and the call waits",
    async (revision) => {
      await using client = await talkWillingly(createToolServer(greet), revision);
      const result = client.result("tools/call", { name: "tool" });
      const question = await asked(client);
      expect(question).toMatchObject({
        method: "elicitation/create",
        params: { message: "Name?", requestedSchema: { type: "object", properties: { name: {} } } },
      });
      answer(client, question, { action: "accept", content: { name: "Ada" } });
      expect(textOf(await result)).toBe("Hello Ada");
      expect(await result).not.toHaveProperty("resultType");
    },
  );

  test.each(["2024-11-05", "2025-03-26"] as const)(
    "tells the model that %s has no such question",
    async (revision) => {
      await using client = await talkWillingly(createToolServer(greet), revision);
      await expect(client.result("tools/call", { name: "tool" })).resolves.toMatchObject({ isError: true });
      expect(client.unasked()).toEqual([]);
    },
  );

  test.each(legacyRevisions)("asks for a sample and for roots in %s, both at once", async (revision) => {
    const messages = [{ role: "user", content: { type: "text", text: "Hi" } }] as const;
    const server = createToolServer((_, { answers }) => {
      const [sampled, roots] = [answers.sampled("text"), answers.roots("roots")];
      if (sampled !== undefined && roots !== undefined) return JSON.stringify([sampled.model, roots]);
      return inputRequired({ text: sample({ messages, maxTokens: 5 }), roots: listRoots() });
    });
    await using client = await talkWillingly(server, revision);
    const result = client.result("tools/call", { name: "tool" });
    const [roots, text] = [await asked(client, "roots/list"), await asked(client, "sampling/createMessage")];
    expect(text.params).toEqual({ messages, maxTokens: 5 });
    answer(client, roots, { roots: [{ uri: "file:///x" }] });
    answer(client, text, { role: "assistant", content: { type: "text", text: "Hello" }, model: "m" });
    expect(textOf(await result)).toBe('["m",[{"uri":"file:///x"}]]');
  });

  test("takes an error for a form that was closed", async () => {
    await using client = await talkWillingly(createToolServer(greet));
    const result = client.result("tools/call", { name: "tool" });
    refuse(client, await asked(client), -32602);
    expect(textOf(await result)).toBe("cancel");
  });

  test("tells the model when the client refuses a sample, and asks the rest no longer", async () => {
    const server = createToolServer(() =>
      inputRequired({ text: sample({ messages: [], maxTokens: 1 }), name: elicit("Name?", {}) }),
    );
    await using client = await talkWillingly(server);
    const result = client.result("tools/call", { name: "tool" });
    const form = await asked(client, "elicitation/create");
    refuse(client, await asked(client, "sampling/createMessage"));
    await expect(result).resolves.toMatchObject({ isError: true });
    expect(textOf(await result)).toContain("The user said no");
    await expect(client.notified("notifications/cancelled")).resolves.toEqual({ requestId: form.id });
  });

  const strict = elicit("Age?", { age: { type: "integer" } }, ["age"]);
  test.each([
    ["a form", { action: "banana" }, strict],
    ["a form", 7, strict],
    ["a form", { action: "accept" }, strict],
    ["a form", { action: "accept", content: { age: "seven" } }, strict],
    ["a page", {}, elicitUrl("Sign in", "https://example.com")],
    ["a sample", { text: "Hi" }, sample({ messages: [], maxTokens: 1 })],
    ["roots", { roots: "file:///x" }, listRoots()],
  ])("does not see that its question for %s was answered by %j; the model is told", async (_, given, ask) => {
    let runs = 0;
    const server = createToolServer(() => {
      runs++;
      return inputRequired({ ask, other: elicit("Name?", {}) });
    });
    await using client = await talkWillingly(server);
    const result = client.result("tools/call", { name: "tool" });
    const questions = [await asked(client), await asked(client)];
    const isOther = ({ params }: Frame): boolean =>
      (params as Partial<Question["params"]>)?.["message"] === "Name?";
    const [question, other] = questions.toSorted((a, b) => Number(isOther(a)) - Number(isOther(b)));
    answer(client, question as Frame, given as object);
    await expect(result).resolves.toMatchObject({ isError: true });
    expect(textOf(await result)).toBe(`The client's answer to ${ask.method} does not fit the question.`);
    await expect(client.notified("notifications/cancelled")).resolves.toEqual({ requestId: other?.id });
    expect(runs).toBe(1);
  });

  test.each([
    ["nothing", {}, elicit("Name?", {})],
    ["only pages", { elicitation: { url: {} } }, elicit("Name?", {})],
    ["only forms", { elicitation: {} }, elicitUrl("Sign in", "https://example.com")],
    ["a broken capability", { elicitation: null }, elicit("Name?", {})],
    ["no tools in samples", { sampling: {} }, sample({ messages: [], maxTokens: 1, tools: [] })],
    ["no roots", { sampling: {} }, listRoots()],
  ])("tells the model when the client declared %s", async (_, capabilities, ask) => {
    const server = createToolServer(() => inputRequired({ ask }));
    await using client = await talkLegacy(server, "2025-11-25", { capabilities: capabilities as never });
    await expect(client.result("tools/call", { name: "tool" })).resolves.toMatchObject({ isError: true });
  });

  test("asks nothing at all when one of its questions cannot be asked", async () => {
    const server = createToolServer(() => inputRequired({ name: elicit("Name?", {}), roots: listRoots() }));
    await using client = await talkLegacy(server, "2025-11-25", { capabilities: { elicitation: {} } });
    await expect(client.result("tools/call", { name: "tool" })).resolves.toMatchObject({ isError: true });
    expect(client.unasked()).toEqual([]);
  });

  test("keeps answers and state over the rounds", async () => {
    const server = createToolServer((_, { answers, state }) => {
      const step = (state as number | undefined) ?? 0;
      if (step === 2) return JSON.stringify(["q0", "q1"].map((key) => answers.elicited(key)));
      return inputRequired({ [`q${step}`]: elicit(`Question ${step}`, {}) }, step + 1);
    });
    await using client = await talkWillingly(server);
    const result = client.result("tools/call", { name: "tool" });
    answer(client, await asked(client), { action: "decline" });
    answer(client, await asked(client), { action: "accept", content: { a: 1 } });
    expect(textOf(await result)).toBe('[{"action":"decline"},{"action":"accept","content":{"a":1}}]');
  });

  test("gives up after so many rounds, and throws no answer away", async () => {
    const server = createToolServer(() => inputRequired({ again: elicit("Again?", {}) }), { maxRounds: 3 });
    await using client = await talkWillingly(server);
    const result = client.result("tools/call", { name: "tool" });
    for (let round = 0; round < 3; round++) answer(client, await asked(client), { action: "decline" });
    await expect(result).resolves.toMatchObject({ isError: true });
    expect(client.unasked()).toHaveLength(3);
  });

  test("whose server is not reached with the answers has reached it before, and says so", async () => {
    const provider = toProvider([], ({ round }) => {
      if (round === undefined) return { kind: "input_required", asks: { name: elicit("Name?", {}) } };
      const facts = { server: "up", delivery: "not_sent" } as const;
      throw new UpstreamError("unavailable", "up is not available, and the call was not sent.", facts);
    });
    await using client = await talkWillingly(createServer(provider, info));
    const response = client.request("tools/call", { name: "tool" });
    answer(client, await asked(client), { action: "decline" });
    const data = { code: "upstream.unavailable", delivery: "outcome_unknown" };
    await expect(response).resolves.toMatchObject({ error: { data } });
  });

  test("that only wants to be called again later is, after a pause", async () => {
    const clock = createVirtualClock();
    const server = createToolServer((_, { state }) => (state === 1 ? "now" : inputRequired({}, 1)), {
      clock,
    });
    await using client = await talkWillingly(server);
    const result = client.result("tools/call", { name: "tool" });
    await expect.poll(() => clock.sleeping, { interval: 1 }).toBe(1);
    await clock.advance(250);
    expect(textOf(await result)).toBe("now");
  });

  test("stops asking when the call is cancelled, and answers nothing", async () => {
    await using client = await talkWillingly(createToolServer(greet));
    void client.request("tools/call", { name: "tool" }, "call");
    const question = await asked(client);
    client.notify("notifications/cancelled", { requestId: "call" });
    await expect(client.notified("notifications/cancelled")).resolves.toEqual({ requestId: question.id });
    answer(client, question, { action: "accept", content: { name: "late" } });
    await client.result("ping");
    expect(client.wire.frames.filter(({ id }) => id === "call")).toEqual([]);
  });

  test("gets its own answer among a hundred calls that ask at once", async () => {
    const server = createToolServer((args, { answers }) => {
      const { nonce } = args as { nonce: string };
      const given = answers.elicited("echo");
      if (given?.action === "accept") return `${nonce} ${String(given.content["nonce"])}`;
      return inputRequired({ echo: elicit(nonce, {}) });
    });
    await using client = await talkWillingly(server);
    const nonces = Array.from({ length: 100 }, (_, index) => `nonce-${index}`);
    const results = nonces.map((nonce) =>
      client.result("tools/call", { name: "tool", arguments: { nonce } }),
    );
    const questions: Frame[] = [];
    while (questions.length < nonces.length) questions.push(await asked(client));
    for (const question of questions.toReversed()) {
      const nonce = (question.params as { message: string }).message;
      answer(client, question, { action: "accept", content: { nonce } });
    }
    const texts = (await Promise.all(results)).map(textOf);
    expect(texts).toEqual(nonces.map((nonce) => `${nonce} ${nonce}`));
  });

  test("may be a prompt, whose failure is an error of the request", async () => {
    const prompts = createPromptRegistry();
    prompts.register("p", {}, () => inputRequired({ roots: listRoots() }));
    await using client = await talkLegacy(createServer(createRegistry({ prompts }), info), "2025-11-25");
    await expect(client.error("prompts/get", { name: "p" })).resolves.toMatchObject({ code: -32603 });
  });
});

describe("a question as the revision has it", () => {
  const form = elicit("Which?", {
    size: {
      type: "string",
      oneOf: [
        { const: "s", title: "Small" },
        { const: "l", title: "Large" },
      ],
      default: "s",
    },
    sure: { type: "boolean", default: true },
  });

  async function question(revision: LegacyRevision, ask: typeof form): Promise<Frame> {
    const server = createToolServer((_, { answers }) =>
      answers.elicited("ask") === undefined ? inputRequired({ ask }) : "done",
    );
    await using client = await talkWillingly(server, revision);
    const result = client.result("tools/call", { name: "tool" });
    const frame = await asked(client);
    answer(client, frame, { action: "cancel" });
    await result;
    return frame;
  }

  test("has choices by name and no defaults but of switches in 2025-06-18", async () => {
    const { params } = await question("2025-06-18", form);
    expect((params as { requestedSchema: { properties: unknown } }).requestedSchema.properties).toEqual({
      size: { type: "string", enum: ["s", "l"], enumNames: ["Small", "Large"] },
      sure: { type: "boolean", default: true },
    });
  });

  test("is as the tool wrote it in 2025-11-25", async () => {
    const { params } = await question("2025-11-25", form);
    expect(params).toEqual(form.params);
  });

  test("about a page has an id of its own in 2025-11-25", async () => {
    const { params } = await question("2025-11-25", elicitUrl("Sign in", "https://example.com"));
    expect(params).toEqual({
      mode: "url",
      message: "Sign in",
      url: "https://example.com",
      elicitationId: expect.stringMatching(/^[0-9a-f-]{36}$/) as unknown,
    });
  });

  test.each([
    ["several of many", elicit("Which?", { all: { type: "array", items: { type: "string", enum: ["a"] } } })],
    ["a page", elicitUrl("Sign in", "https://example.com")],
  ])("cannot be about %s in 2025-06-18", async (_, ask) => {
    await using client = await talkWillingly(
      createToolServer(() => inputRequired({ ask })),
      "2025-06-18",
    );
    await expect(client.result("tools/call", { name: "tool" })).resolves.toMatchObject({ isError: true });
  });
});
