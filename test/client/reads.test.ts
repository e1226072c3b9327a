import { describe, expect, test } from "vitest";
import { connect } from "../../packages/client/src/client/connect.ts";
import { elicit } from "../../packages/core/src/mcp/question.ts";
import { inputRequired } from "../../packages/core/src/provider/content.ts";
import { createCompletionRegistry } from "../../packages/server/src/registry/completion.ts";
import { createPromptRegistry } from "../../packages/server/src/registry/prompts.ts";
import { createRegistry } from "../../packages/server/src/registry/registry.ts";
import { createResourceRegistry } from "../../packages/server/src/registry/resources.ts";
import { createServer } from "../../packages/server/src/wire/server.ts";

const handlers = { elicit: () => ({ action: "accept" as const, content: { name: "Ada" } }) };
const question = { who: elicit("Who?", { name: { type: "string" } }) };

function createLibrary(serves: "modern" | "legacy"): ReturnType<typeof createServer> {
  const resources = createResourceRegistry();
  resources.register("book://1", { name: "One" }, () => "Once upon a time");
  resources.register("book://mine", { name: "Mine" }, ({ answers }) => {
    const answer = answers.elicited("who");
    return answer?.action === "accept" ? `of ${String(answer.content["name"])}` : inputRequired(question);
  });
  const prompts = createPromptRegistry();
  prompts.register(
    "review",
    { arguments: [{ name: "code", required: true }] },
    ({ code }) => `Review ${code}`,
  );
  const completion = createCompletionRegistry();
  completion.registerPrompt("review", "code", (typed) =>
    ["alpha", "beta"].filter((word) => word.startsWith(typed)),
  );
  const registry = createRegistry({ resources, prompts, completion });
  return createServer(registry, { name: "library", version: "1.0.0" }, { serves });
}

describe.each(["modern", "legacy"] as const)("a client of a %s server", (serves) => {
  test("reads, also what asks first", async () => {
    await using client = await connect({ server: createLibrary(serves) }, { handlers });
    await expect(client.readResource("book://1")).resolves.toMatchObject({
      contents: [{ text: "Once upon a time" }],
    });
    await expect(client.readResource("book://mine")).resolves.toMatchObject({
      contents: [{ text: "of Ada" }],
    });
    await expect(client.readResource("book://2")).rejects.toThrow("book://2");
  });

  test("gets prompts and completes their arguments", async () => {
    await using client = await connect({ server: createLibrary(serves) });
    const prompt = await client.getPrompt("review", { code: "x = 1" });
    expect(prompt.messages).toMatchObject([{ role: "user", content: { text: "Review x = 1" } }]);
    const ref = { type: "ref/prompt", name: "review" } as const;
    await expect(client.complete(ref, { name: "code", value: "al" })).resolves.toMatchObject({
      values: ["alpha"],
    });
  });

  test("is told when the server offers no such thing", async () => {
    const bare = createServer(createRegistry(), { name: "bare", version: "1.0.0" }, { serves });
    const client = await connect({ server: bare });
    await expect(client.readResource("book://1")).rejects.toThrow("offers no resources");
    await client.close();
    await expect(client.callTool("x")).rejects.toMatchObject({ delivery: "not_sent" });
  });
});
