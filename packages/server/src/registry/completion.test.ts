import { describe, expect, test } from "vitest";
import { complete } from "../../../../test/support/use-provider.ts";
import { RpcError } from "../../../core/src/errors/index.ts";
import type { CompletionRef } from "../../../core/src/mcp/types.ts";
import { createCompletionRegistry } from "./completion.ts";

const prompt: CompletionRef = { type: "ref/prompt", name: "review" };
const template: CompletionRef = { type: "ref/resource", uri: "repo://{owner}/{name}" };

function request(ref: CompletionRef, name: string, value = "", known: Record<string, string> = {}) {
  return { ref, argument: { name, value }, context: { arguments: known } };
}

type Completed = { readonly values: readonly string[] };

describe("a completion registry", () => {
  const completion = createCompletionRegistry();
  const ask = async (params: object): Promise<Completed> => (await complete(completion, params)) as Completed;
  completion.registerPrompt("review", "language", (typed) =>
    ["python", "pascal", "rust"].filter((word) => word.startsWith(typed)),
  );
  completion.registerTemplate("repo://{owner}/{name}", "name", async (typed, { owner }) => [
    `${String(owner)}/${typed}`,
  ]);
  completion.registerPrompt("many", "n", (count) => Array.from({ length: Number(count) }, (_, n) => `${n}`));

  test("suggests values for what was typed", async () => {
    expect(await ask(request(prompt, "language", "p"))).toEqual({
      values: ["python", "pascal"],
      total: 2,
      hasMore: false,
    });
  });

  test("knows the arguments that are filled in already", async () => {
    const { values } = await ask(request(template, "name", "he", { owner: "octo" }));
    expect(values).toEqual(["octo/he"]);
  });

  test.each([
    ["0", 0, false],
    ["100", 100, false],
    ["101", 100, true],
    ["5000", 100, true],
  ])("of %s values, sends at most 100 and says whether there are more", async (count, sent, hasMore) => {
    const many: CompletionRef = { type: "ref/prompt", name: "many" };
    const result = await ask(request(many, "n", count));
    expect(result.values).toHaveLength(sent);
    expect(result).toMatchObject({ total: Number(count), hasMore });
  });

  test("has nothing to say about an argument nobody completes", async () => {
    expect((await ask(request(prompt, "code"))).values).toEqual([]);
  });

  test.each([
    [{ type: "ref/prompt", name: "missing" } as const, "prompt missing"],
    [{ type: "ref/resource", uri: "repo://{other}" } as const, "resource repo://{other}"],
  ])("refuses a reference it does not know", async (ref, named) => {
    const refused = ask(request(ref, "x"));
    await expect(refused).rejects.toEqual(
      new RpcError("rpc.invalid_params", `Invalid params: nothing to complete for ${named}`),
    );
  });
});
