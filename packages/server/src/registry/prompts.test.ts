import { describe, expect, test } from "vitest";
import { getPrompt, listItems } from "../../../../test/support/use-provider.ts";
import { NotFoundError, RpcError } from "../../../core/src/errors/index.ts";
import { RawJson } from "../../../core/src/json/raw.ts";
import { elicit } from "../../../core/src/mcp/question.ts";
import { inputRequired, text } from "../../../core/src/provider/content.ts";
import { createCallContext } from "../../../core/src/provider/context.ts";
import { createOperation } from "../../../core/src/provider/operation.ts";
import type { Change } from "../../../core/src/provider/provider.ts";
import { createPromptRegistry, type PromptOutput, type PromptRegistry } from "./prompts.ts";

const context = createCallContext();

async function get(prompts: PromptRegistry, name: string, args: Record<string, string> = {}) {
  const outcome = await getPrompt(prompts, name, args);
  return outcome.kind === "complete" ? outcome.result.value : outcome;
}

function promptsOf(output: PromptOutput): PromptRegistry {
  const prompts = createPromptRegistry();
  prompts.register("p", { description: "Does p" }, () => output);
  return prompts;
}

describe("a prompt", () => {
  test("gets its arguments and gives the user's message as a string", async () => {
    const prompts = createPromptRegistry();
    prompts.register(
      "review",
      { arguments: [{ name: "code", required: true }] },
      ({ code }) => `Review ${code}`,
    );
    expect(await get(prompts, "review", { code: "x = 1" })).toEqual({
      messages: [{ role: "user", content: text("Review x = 1") }],
    });
  });

  test("gives messages under its own description, or a whole result as it is", async () => {
    const messages = [{ role: "assistant", content: text("hi") }] as const;
    expect(await get(promptsOf(messages), "p")).toEqual({ description: "Does p", messages });
    expect(await get(promptsOf({ messages, description: "Other" }), "p")).toEqual({
      description: "Other",
      messages,
    });
    expect(await get(promptsOf([]), "p")).toEqual({ description: "Does p", messages: [] });
  });

  test("does not run without a required argument, and the error names every one that is missing", async () => {
    const prompts = createPromptRegistry();
    const needed = [{ name: "a", required: true }, { name: "b", required: true }, { name: "c" }];
    prompts.register("p", { arguments: needed }, () => expect.fail("ran"));
    const missing = (names: string): RpcError =>
      new RpcError("rpc.invalid_params", `Invalid params: the prompt p needs the arguments ${names}`);
    await expect(get(prompts, "p")).rejects.toEqual(missing("a, b"));
    await expect(get(prompts, "p", { a: "" })).rejects.toEqual(missing("b"));
  });

  test("is not fooled by what every object has", async () => {
    const prompts = createPromptRegistry();
    prompts.register("p", { arguments: [{ name: "toString", required: true }] }, () => "ran");
    await expect(get(prompts, "p")).rejects.toMatchObject({ code: "rpc.invalid_params" });
  });

  test("may ask, and gets the answers and its state on the next round", async () => {
    const prompts = createPromptRegistry();
    prompts.register("greet", {}, (_, { answers, state }) => {
      const answer = answers.elicited("who");
      if (answer?.action !== "accept") return inputRequired({ who: elicit("Who?", {}) }, { round: 1 });
      return `Greet ${String(answer.content["name"])} ${JSON.stringify(state)}`;
    });
    expect(await get(prompts, "greet")).toMatchObject({ kind: "input_required", state: { round: 1 } });
    const who = RawJson.fromValue({ action: "accept", content: { name: "Ada" } });
    const round = { answers: { who }, state: { round: 1 } };
    const outcome = await prompts.call(createOperation("prompts/get", "greet", { round }), context);
    expect(outcome.kind === "complete" && outcome.result.value).toEqual({
      messages: [{ role: "user", content: text('Greet Ada {"round":1}') }],
    });
  });
});

describe("a prompt registry", () => {
  test("lists prompts in order, the same array until one comes or goes", async () => {
    const prompts = promptsOf("x");
    const first = await listItems(prompts, "prompts");
    expect(first).toEqual([{ name: "p", description: "Does p" }]);
    expect(await listItems(prompts, "prompts")).toBe(first);
    prompts.register("q", {}, () => "y");
    expect((await listItems(prompts, "prompts")).map(({ name }) => name)).toEqual(["p", "q"]);
    expect([prompts.unregister("p"), prompts.unregister("p")]).toEqual([true, false]);
    expect((await listItems(prompts, "prompts")).map(({ name }) => name)).toEqual(["q"]);
  });

  test("refuses a name that is taken", () => {
    expect(() => promptsOf("x").register("p", {}, () => "y")).toThrow('The prompt "p" is registered already');
  });

  test("does not find what is not there", async () => {
    await expect(get(promptsOf("x"), "q")).rejects.toEqual(new NotFoundError("prompt", "q"));
  });

  test("reports a change when a prompt comes or goes", async () => {
    const prompts = promptsOf("x");
    const seen: Change[] = [];
    prompts.onChange?.((change) => seen.push(change));
    prompts.unregister("p");
    await Promise.resolve();
    expect(seen).toEqual([{ part: "prompts" }]);
  });
});
