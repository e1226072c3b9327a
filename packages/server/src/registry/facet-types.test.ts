import { describe, expect, test } from "vitest";
import { createPromptRegistry } from "./prompts.ts";
import { createResourceRegistry } from "./resources.ts";

// As in tool-types.test.ts, `tsc` checks these lines too.

describe("what fails to compile is refused at registration:", () => {
  test.each<[what: string, register: () => void, sentence: string]>([
    [
      "a resource without a reader",
      // @ts-expect-error -- the reader is missing
      () => createResourceRegistry().register("a:b", { name: "b" }),
      'Resource "a:b": the handler is missing',
    ],
    [
      "a misspelt key of a resource",
      // @ts-expect-error -- it is "mimeType"
      () => createResourceRegistry().register("a:b", { name: "b", mimetype: "text/plain" }, () => ""),
      'Resource "a:b" has no option "mimetype"; did you mean "mimeType"?',
    ],
    [
      "a misspelt key of a template",
      // @ts-expect-error -- it is "title"
      () => createResourceRegistry().registerTemplate("a:{b}", { name: "b", tilte: "B" }, () => ""),
      'Resource template "a:{b}" has no option "tilte"; did you mean "title"?',
    ],
    [
      "a prompt without a handler",
      // @ts-expect-error -- the handler is missing
      () => createPromptRegistry().register("review", {}),
      'Prompt "review": the handler is missing',
    ],
    [
      "a misspelt key of a prompt",
      // @ts-expect-error -- it is "arguments"
      () => createPromptRegistry().register("review", { argument: [] }, () => ""),
      'Prompt "review" has no option "argument"; did you mean "arguments"?',
    ],
  ])("%s", (_, register, sentence) => {
    expect(register).toThrow(sentence);
  });
});
