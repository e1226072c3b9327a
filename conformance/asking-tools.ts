import { type Ask, type Content, elicit, inputRequired, type Registry, sample, text } from "junctor";

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

  registerForm(registry, "test_elicitation_sep1034_defaults", "Asks with default values", {
    name: { type: "string", default: "John Doe" },
    age: { type: "integer", default: 30 },
    score: { type: "number", default: 95.5 },
    status: { type: "string", enum: ["active", "inactive", "pending"], default: "active" },
    verified: { type: "boolean", default: true },
  });

  registerForm(registry, "test_elicitation_sep1330_enums", "Asks with every kind of choice", {
    untitledSingle: { type: "string", enum: ["option1", "option2", "option3"] },
    titledSingle: { type: "string", oneOf: titled("First Option", "Second Option", "Third Option") },
    legacyEnum: {
      type: "string",
      enum: ["opt1", "opt2", "opt3"],
      enumNames: ["Option One", "Option Two", "Option Three"],
    },
    untitledMulti: { type: "array", items: { type: "string", enum: ["option1", "option2", "option3"] } },
    titledMulti: {
      type: "array",
      items: { anyOf: titled("First Choice", "Second Choice", "Third Choice") },
    },
  });
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

function titled(...titles: readonly string[]): readonly object[] {
  return titles.map((title, index) => ({ const: `value${index + 1}`, title }));
}

function describe(answer: { readonly action: string; readonly content?: unknown }): string {
  return `action=${answer.action}, content=${JSON.stringify(answer.content ?? {})}`;
}

/** Asks the client's model one thing. */
export function sampleText(prompt: string, maxTokens: number): Ask {
  return sample({ messages: [{ role: "user", content: text(prompt) }], maxTokens });
}

/** The text of what a model wrote. */
export function toText(content: Content | readonly Content[]): string {
  const blocks = Array.isArray(content) ? (content as readonly Content[]) : [content as Content];
  return blocks.map((block) => (block.type === "text" ? block.text : `[${block.type}]`)).join("");
}
