import { describe, expect, test } from "vitest";
import { RpcError } from "../../../core/src/errors/index.ts";
import type { CompletionRef } from "../../../core/src/mcp/types.ts";
import { createCallContext } from "../../../core/src/provider/context.ts";
import { createCompletionRegistry } from "./completion.ts";

const context = createCallContext();
const prompt: CompletionRef = { type: "ref/prompt", name: "review" };
const template: CompletionRef = { type: "ref/resource", uri: "repo://{owner}/{name}" };

function request(ref: CompletionRef, name: string, value = "", known: Record<string, string> = {}) {
  return { ref, argument: { name, value }, known };
}

describe("a completion registry", () => {
  const completion = createCompletionRegistry();
  completion.registerPrompt("review", "language", (typed) =>
    ["python", "pascal", "rust"].filter((word) => word.startsWith(typed)),
  );
  completion.registerTemplate("repo://{owner}/{name}", "name", async (typed, { owner }) => [
    `${String(owner)}/${typed}`,
  ]);
  completion.registerPrompt("many", "n", (count) => Array.from({ length: Number(count) }, (_, n) => `${n}`));

  test("suggests values for what was typed", async () => {
    expect(await completion.complete(request(prompt, "language", "p"), context)).toEqual({
      values: ["python", "pascal"],
      total: 2,
      hasMore: false,
    });
  });

  test("knows the arguments that are filled in already", async () => {
    const { values } = await completion.complete(request(template, "name", "he", { owner: "octo" }), context);
    expect(values).toEqual(["octo/he"]);
  });

  test.each([
    ["0", 0, false],
    ["100", 100, false],
    ["101", 100, true],
    ["5000", 100, true],
  ])("of %s values, sends at most 100 and says whether there are more", async (count, sent, hasMore) => {
    const many: CompletionRef = { type: "ref/prompt", name: "many" };
    const result = await completion.complete(request(many, "n", count), context);
    expect(result.values).toHaveLength(sent);
    expect(result).toMatchObject({ total: Number(count), hasMore });
  });

  test("has nothing to say about an argument nobody completes", async () => {
    expect((await completion.complete(request(prompt, "code"), context)).values).toEqual([]);
  });

  test.each([
    [{ type: "ref/prompt", name: "missing" } as const, "prompt missing"],
    [{ type: "ref/resource", uri: "repo://{other}" } as const, "resource repo://{other}"],
  ])("refuses a reference it does not know", async (ref, named) => {
    const refused = completion.complete(request(ref, "x"), context);
    await expect(refused).rejects.toEqual(
      new RpcError("rpc.invalid_params", `Invalid params: nothing to complete for ${named}`),
    );
  });
});
