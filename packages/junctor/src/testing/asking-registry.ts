import { elicit, elicitUrl, listRoots, sample } from "@junctor/core/mcp";
import { inputRequired, text } from "@junctor/core/provider";
import { createRegistry, type Registry } from "@junctor/server";

/**
 * Tools that ask, for tests of programs that answer. Each asks one question and gives back the answer it got as
 * structured content: `elicit` (a form with the field `name`), `elicit_url`, `sample` and `roots`.
 *
 * @example
 * const server = createServer(createAskingRegistry(), { name: "asking", version: "0.0.0" });
 * await using client = await connect({ server }, { handlers: myHandlers, revision: "2025-11-25" });
 * const { structuredContent } = await client.callTool("elicit");
 * expect(structuredContent).toEqual({ action: "accept", content: { name: "Ada" } });
 */
export function createAskingRegistry(): Registry {
  const registry = createRegistry();
  registry.register("elicit", { description: "Asks the user for a name." }, (_, { answers }) => {
    const asked = elicit("What is your name?", { name: { type: "string", title: "Name" } }, ["name"]);
    return answers.elicited("name") ?? inputRequired({ name: asked });
  });
  registry.register("elicit_url", { description: "Asks the user to visit a page." }, (_, { answers }) => {
    const asked = elicitUrl("Please sign in.", "https://example.com/sign-in");
    return answers.elicited("page") ?? inputRequired({ page: asked });
  });
  registry.register("sample", { description: "Asks the model for a word." }, (_, { answers }) => {
    const messages = [{ role: "user" as const, content: text("Say one word.") }];
    return answers.sampled("word") ?? inputRequired({ word: sample({ messages, maxTokens: 10 }) });
  });
  registry.register("roots", { description: "Asks for the user's folders." }, (_, { answers }) => {
    const roots = answers.roots("folders");
    return roots === undefined ? inputRequired({ folders: listRoots() }) : { roots };
  });
  return registry;
}
