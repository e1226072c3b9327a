import { describe, expect, test } from "vitest";
import { z } from "zod";
import { createDeferred } from "../../../core/src/async/queue.ts";
import { elicit, type Elicited } from "../../../core/src/mcp/question.ts";
import type { Revision } from "../../../core/src/mcp/revision.ts";
import { type AnswerReader, inputRequired } from "../../../core/src/provider/content.ts";
import type { InputRequired } from "../../../core/src/provider/provider.ts";
import { createPromptRegistry } from "../../../server/src/registry/prompts.ts";
import { createRegistry, type Registry } from "../../../server/src/registry/registry.ts";
import { createResourceRegistry } from "../../../server/src/registry/resources.ts";
import { createServer } from "../../../server/src/wire/server.ts";
import { accepted, cancelled, declined, sampled, type Script } from "./answers.ts";
import { createAskingRegistry } from "./asking-registry.ts";
import { connectForTest, type TestClient } from "./connect-for-test.ts";
import { createVirtualClock } from "./virtual-clock.ts";

const revisions: readonly Revision[] = ["2026-07-28", "2025-11-25", "2025-06-18"];

describe.each(revisions)("in %s", (revision) => {
  test("a tool is called over the protocol, arguments checked", async () => {
    const registry = createRegistry();
    registry.register("add", { input: z.object({ a: z.number(), b: z.number() }) }, ({ a, b }) => a + b);
    await using app = await connectForTest(registry, { revision });
    expect((await app.agreement()).mode.revision).toBe(revision);
    expect(await app.callTool("add", { a: 1, b: 2 })).toMatchObject({ content: [{ text: "3" }] });
    await expect(app.callTool("add", { a: "1" })).rejects.toThrow("Invalid arguments");
  });

  test("questions are answered by the script and kept", async () => {
    const answers = {
      elicit: accepted({ name: "Ada" }),
      sample: sampled("word"),
      roots: [{ uri: "file:///work" }],
    };
    await using app = await connectForTest(createAskingRegistry(), { revision, answers });
    const { structuredContent: form } = await app.callTool("elicit");
    expect(form).toEqual({ action: "accept", content: { name: "Ada" } });
    const { structuredContent: word } = await app.callTool("sample");
    expect(word).toMatchObject({ model: "test-model", content: { text: "word" } });
    expect((await app.callTool("roots")).structuredContent).toEqual({ roots: [{ uri: "file:///work" }] });
    expect(app.questions).toMatchObject([
      { kind: "elicit", params: { message: "What is your name?" }, answer: { action: "accept" } },
      { kind: "sample", params: { maxTokens: 10 }, answer: { role: "assistant" } },
      { kind: "roots", answer: [{ uri: "file:///work" }] },
    ]);
  });

  test("a list answers one question after the other, and the next one fails the call", async () => {
    const elicitAnswers = [accepted({ size: 1 }), declined(), cancelled()];
    await using app = await connectForTest(asking(), { revision, answers: { elicit: elicitAnswers } });
    const actions = [];
    for (const _ of elicitAnswers) actions.push((await app.callTool("size")).content);
    expect(actions).toMatchObject([[{ text: "accept" }], [{ text: "decline" }], [{ text: "cancel" }]]);
    await expect(app.callTool("size")).rejects.toThrow(
      'The script has 3 answers for elicit, but was asked once more: {"message":"Which size?"',
    );
    expect(app.questions.map(({ answer }) => answer)).toEqual([...elicitAnswers, undefined]);
  });

  describe("a question without an answer fails its own call and no other:", () => {
    const missing = "The script has 0 answers for elicit";

    test("of a stream", async () => {
      await using app = await connectForTest(asking(), { revision, answers: { elicit: [] } });
      const drained = (async () => {
        for await (const part of app.streamTool("size")) expect(part).not.toHaveProperty("result");
      })();
      await expect(drained).rejects.toThrow(missing);
      expect(await app.callTool("plain")).toMatchObject({ content: [{ text: "plain" }] });
    });

    test.each<[what: string, read: (app: TestClient) => Promise<unknown>]>([
      ["a prompt", (app) => app.getPrompt("size")],
      ["a resource", (app) => app.readResource("test:size")],
    ])("of %s", async (_, read) => {
      await using app = await connectForTest(asking(), { revision, answers: { elicit: [] } });
      await expect(read(app)).rejects.toThrow(missing);
      expect(await app.callTool("plain")).toMatchObject({ content: [{ text: "plain" }] });
    });

    test("of one of two calls at the same time", async () => {
      const both = createDeferred<void>();
      let asked = 0;
      const elicitAnswer: Script<Elicited> = async ({ message }) => {
        if (++asked === 2) both.resolve();
        await both.promise;
        return message === "Which size?" ? accepted({ size: 3 }) : (undefined as never);
      };
      await using app = await connectForTest(asking(), { revision, answers: { elicit: elicitAnswer } });
      const [size, colour] = await Promise.allSettled([app.callTool("size"), app.callTool("colour")]);
      expect(size).toMatchObject({ status: "fulfilled", value: { content: [{ text: "accept" }] } });
      expect(colour).toMatchObject({ status: "rejected" });
      expect(String(colour.status === "rejected" && colour.reason)).toContain(
        'The function for elicit gave no answer to {"message":"Which colour?"',
      );
    });

    test("each time it is asked, with the number of answers there are", async () => {
      await using app = await connectForTest(asking(), { revision, answers: { elicit: [declined()] } });
      await app.callTool("size");
      for (let round = 0; round < 2; round += 1) {
        await expect(app.callTool("size")).rejects.toThrow("The script has 1 answer for elicit, but");
      }
    });
  });

  test("a function answers by what it is asked", async () => {
    await using app = await connectForTest(asking(), {
      revision,
      answers: { elicit: ({ message }) => (message === "Which size?" ? accepted({ size: 3 }) : declined()) },
    });
    expect(await app.callTool("size")).toMatchObject({ content: [{ text: "accept" }] });
  });

  test("a kind without an answer is not declared", async () => {
    const registry = createRegistry();
    registry.register("what", {}, (_, { capabilities }) => Object.keys(capabilities).join());
    await using mute = await connectForTest(registry, { revision });
    expect(await mute.callTool("what")).toMatchObject({ content: [{ text: "" }] });
    await using app = await connectForTest(registry, { revision, answers: { elicit: declined() } });
    expect(await app.callTool("what")).toMatchObject({ content: [{ text: "elicitation" }] });
  });

  test("progress, logs and changes are kept in order", async () => {
    const registry = createRegistry();
    registry.register("work", {}, async function* () {
      yield { type: "progress", progress: 1, total: 2 };
      yield { type: "log", level: "debug", data: "half" };
      yield { type: "progress", progress: 2, total: 2 };
    });
    await using app = await connectForTest(registry, { revision });
    const seen: unknown[] = [];
    await app.callTool("work", {}, { onEvent: (event) => seen.push(event) });
    expect(app.events).toEqual([
      { kind: "progress", progress: 1, total: 2 },
      { kind: "log", level: "debug", data: "half" },
      { kind: "progress", progress: 2, total: 2 },
    ]);
    expect(seen).toEqual(app.events);
    registry.register("later", {}, () => "");
    await expect.poll(() => app.changes).toEqual([{ part: "tools" }]);
  });
});

test("the caller has the name it was given", async () => {
  const registry = createRegistry();
  registry.register("who", {}, (_, { caller }) => caller ?? "nobody");
  await using app = await connectForTest(registry, { caller: "ada" });
  expect(await app.callTool("who")).toMatchObject({ content: [{ text: "ada" }] });
});

test("a server may be given instead of a provider", async () => {
  const server = createServer(createRegistry(), { name: "weather", version: "2.0.0" });
  await using app = await connectForTest(server);
  expect((await app.agreement()).serverInfo).toMatchObject({ name: "weather" });
});

test("a virtual clock moves deadlines", async () => {
  const clock = createVirtualClock();
  const started = createDeferred<void>();
  const registry = createRegistry();
  registry.register("hang", {}, () => {
    started.resolve();
    return new Promise<never>(() => {});
  });
  await using app = await connectForTest(registry, { clock });
  const failed = app.callTool("hang", {}, { timeoutMs: 1000 }).catch((error: unknown) => error);
  await started.promise;
  await clock.advance(1000);
  expect(await failed).toMatchObject({ code: "client.timeout" });
});

test("an option that does not exist is refused", async () => {
  // @ts-expect-error -- it is "revision"
  await expect(connectForTest(createRegistry(), { revison: "2025-11-25" })).rejects.toThrow(
    'connectForTest has no option "revison"; did you mean "revision"?',
  );
});

/** The tools `size` and `colour`, the prompt `size` and the resource `test:size` ask; the tool `plain` does not. */
function asking(): Registry {
  const ask = (what: string, answers: AnswerReader): string | InputRequired =>
    answers.elicited(what)?.action ??
    inputRequired({ [what]: elicit(`Which ${what}?`, { [what]: { type: "number" } }) });
  const prompts = createPromptRegistry();
  prompts.register("size", {}, (_, { answers }) => ask("size", answers));
  const resources = createResourceRegistry();
  resources.register("test:size", { name: "size" }, ({ answers }) => ask("size", answers));
  const registry = createRegistry({ prompts, resources });
  registry.register("size", {}, (_, { answers }) => ask("size", answers));
  registry.register("colour", {}, (_, { answers }) => ask("colour", answers));
  registry.register("plain", {}, () => "plain");
  return registry;
}
