import {
  type CompletionRegistry,
  createCompletionRegistry,
  createPromptRegistry,
  elicit,
  embedResource,
  image,
  inputRequired,
  type PromptRegistry,
  text,
} from "junctor";
import { pixelPng } from "./samples.ts";

const required = (name: string): { name: string; description: string; required: true } => ({
  name,
  description: `The ${name} of the prompt`,
  required: true,
});

/** A prompt of every kind, and one that asks. */
export function createEverythingPrompts(): PromptRegistry {
  const prompts = createPromptRegistry();

  prompts.register(
    "test_simple_prompt",
    { description: "A prompt without arguments" },
    () => "This is a simple prompt for testing.",
  );

  prompts.register(
    "test_prompt_with_arguments",
    { description: "A prompt with two arguments", arguments: [required("arg1"), required("arg2")] },
    ({ arg1, arg2 }) => `Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`,
  );

  prompts.register(
    "test_prompt_with_embedded_resource",
    { description: "A prompt that brings a resource", arguments: [required("resourceUri")] },
    ({ resourceUri = "" }) => [
      {
        role: "user",
        content: embedResource(resourceUri, "Embedded resource content for testing.", "text/plain"),
      },
      { role: "user", content: text("Please process the embedded resource above.") },
    ],
  );

  prompts.register("test_prompt_with_image", { description: "A prompt that brings an image" }, () => [
    { role: "user", content: image(pixelPng, "image/png") },
    { role: "user", content: text("Please analyze the image above.") },
  ]);

  prompts.register(
    "test_input_required_result_prompt",
    { description: "A prompt that asks for its context" },
    (_, { answers }) => {
      const answer = answers.elicited("user_context");
      if (answer === undefined) {
        const fields = { context: { type: "string" } };
        return inputRequired({
          user_context: elicit("What context should the prompt use?", fields, ["context"]),
        });
      }
      return `Use this context: ${JSON.stringify(answer)}`;
    },
  );

  return prompts;
}

/** Completes the prompt with arguments, from a short list. */
export function createEverythingCompletion(): CompletionRegistry {
  const completion = createCompletionRegistry();
  const places = ["paris", "park", "party"];
  for (const argument of ["arg1", "arg2"]) {
    completion.registerPrompt("test_prompt_with_arguments", argument, (typed) =>
      places.filter((place) => place.startsWith(typed)),
    );
  }
  return completion;
}
