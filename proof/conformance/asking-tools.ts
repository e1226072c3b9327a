import {
  type Question,
  type Content,
  elicit,
  inputRequired,
  missingCapability,
  type Registry,
  sample,
  text,
} from "junctor";
import { fieldsWithChoices, fieldsWithDefaults } from "./samples.ts";

const messageInput = (name: string): { readonly [keyword: string]: unknown } => ({
  type: "object",
  properties: { [name]: { type: "string" } },
  required: [name],
});

/**
 * The tools of the 2025 scenarios that ask their caller something. They are written like any other asking tool: how the
 * question travels is up to the era of the caller.
 */
export function registerAskingTools(registry: Registry): void {
  registry.register(
    "test_sampling",
    { description: "Asks the client's model", input: messageInput("prompt") },
    ({ prompt }, { answers }) => {
      const reply = answers.sampled("reply");
      if (reply === undefined) return inputRequired({ reply: sampleText(String(prompt), 100) });
      return `LLM response: ${toText(reply.content)}`;
    },
  );

  registry.register(
    "test_elicitation",
    { description: "Asks the user", input: messageInput("message") },
    ({ message }, { answers }) => {
      const answer = answers.elicited("answer");
      const fields = { response: { type: "string", description: "User's response" } };
      if (answer === undefined)
        return inputRequired({ answer: elicit(String(message), fields, ["response"]) });
      return `User response: ${describe(answer)}`;
    },
  );

  registry.register(
    "test_missing_capability",
    { description: "Asks the client's model, which a client may not have declared" },
    (_, { answers, capabilities }) => {
      if (capabilities.sampling === undefined) throw missingCapability({ sampling: {} });
      // A gateway declares sampling for all callers of a process, and answers for those that have none.
      if (answers.sampled("reply") === undefined)
        return inputRequired({ reply: sampleText("Say hello", 10) });
      return "The client declared sampling.";
    },
  );

  registerForm(registry, "test_elicitation_sep1034_defaults", "Asks with default values", fieldsWithDefaults);
  registerForm(
    registry,
    "test_elicitation_sep1330_enums",
    "Asks with every kind of choice",
    fieldsWithChoices,
  );
}

function registerForm(
  registry: Registry,
  name: string,
  description: string,
  fields: { readonly [name: string]: object },
): void {
  registry.register(name, { description }, (_, { answers }) => {
    const form = answers.elicited("form");
    if (form === undefined) return inputRequired({ form: elicit("Please fill in the form", fields) });
    return `Elicitation completed: ${describe(form)}`;
  });
}

function describe(answer: { readonly action: string; readonly content?: unknown }): string {
  return `action=${answer.action}, content=${JSON.stringify(answer.content ?? {})}`;
}

/** Asks the client's model one thing. */
export function sampleText(prompt: string, maxTokens: number): Question {
  return sample({ messages: [{ role: "user", content: text(prompt) }], maxTokens });
}

/** The text of what a model wrote. */
export function toText(content: Content | readonly Content[]): string {
  const blocks = Array.isArray(content) ? (content as readonly Content[]) : [content as Content];
  return blocks.map((block) => (block.type === "text" ? block.text : `[${block.type}]`)).join("");
}
