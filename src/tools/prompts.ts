import { NotFoundError } from "../errors/not-found-error.ts";
import { RpcError } from "../errors/rpc-error.ts";
import { RawJson } from "../json/raw.ts";
import type { Prompt, PromptMessage, PromptResult } from "../mcp/types.ts";
import { assertKnownKeys, keys, type KeysOf } from "../options/known-keys.ts";
import { type AnswerReader, isInputRequired, noAnswers, readAnswers } from "./ask.ts";
import { createNamedEntries } from "./catalog.ts";
import { text } from "./content.ts";
import { type CallContext, withContext } from "./context.ts";
import type { Change, InputRequired, Outcome, PromptProvider, PromptRequest } from "./provider.ts";
import { assertHandler } from "./tool-spec.ts";

/** What a prompt gives: the user's message as text, messages, or a whole result. */
export type PromptOutput = string | readonly PromptMessage[] | PromptResult | InputRequired;

/** What a prompt gets besides its arguments. */
export interface PromptContext extends CallContext {
  readonly answers: AnswerReader;
  readonly state: unknown;
}

export type PromptHandler = (
  args: { readonly [name: string]: string },
  context: PromptContext,
) => PromptOutput | Promise<PromptOutput>;

/** Prompts living in this process. Made by {@link createPromptRegistry}. */
export interface PromptRegistry extends PromptProvider {
  /**
   * Adds a prompt. Arguments marked `required` are there when the handler runs. Throws at once for a taken name, an unknown
   * key of the spec and a missing handler.
   *
   * @example
   * prompts.register("review", { arguments: [{ name: "code", required: true }] }, ({ code }) => `Review this:\n${code}`);
   */
  register(name: string, spec: Omit<Prompt, "name">, handler: PromptHandler): void;
  /** Removes a prompt; false when there was none. */
  unregister(name: string): boolean;
  onChange(listener: (change: Change) => void): () => void;
}

interface PromptEntry {
  readonly prompt: Prompt;
  readonly handler: PromptHandler;
}

const specKeys: KeysOf<Omit<Prompt, "name">> = keys("title description arguments icons _meta");

/** An empty registry of prompts; pass it to `createRegistry({ prompts })`. */
export function createPromptRegistry(): PromptRegistry {
  const catalog = createNamedEntries("The prompt", { kind: "prompts" }, (entry: PromptEntry) => entry.prompt);
  return {
    register: (name, spec, handler) => {
      const what = `Prompt ${JSON.stringify(name)}`;
      assertKnownKeys(what, spec, specKeys);
      assertHandler(what, handler);
      catalog.add(name, { prompt: Object.freeze({ name, ...spec }), handler });
    },
    unregister: (name) => catalog.remove(name),
    listPrompts: () => Promise.resolve(catalog.list()),
    getPrompt: async (request: PromptRequest, context): Promise<Outcome> => {
      const entry = catalog.entries.get(request.name);
      if (entry === undefined) throw new NotFoundError("prompt", request.name);
      assertArguments(entry.prompt, request.arguments);
      const { resumption } = request;
      const answers = resumption === undefined ? noAnswers : readAnswers(resumption);
      const own = withContext(context, { answers, state: resumption?.state });
      const output = await entry.handler(request.arguments, own);
      if (isInputRequired(output)) return output;
      return { kind: "complete", result: RawJson.fromValue(toPromptResult(output, entry.prompt)) };
    },
    onChange: catalog.onChange,
  };
}

function assertArguments(prompt: Prompt, given: { readonly [name: string]: string }): void {
  const missing = (prompt.arguments ?? []).filter(
    ({ name, required }) => required === true && !Object.hasOwn(given, name),
  );
  if (missing.length === 0) return;
  const names = missing.map(({ name }) => name).join(", ");
  throw new RpcError(
    "rpc.invalid_params",
    `Invalid params: the prompt ${prompt.name} needs the arguments ${names}`,
  );
}

function toPromptResult(output: Exclude<PromptOutput, InputRequired>, prompt: Prompt): PromptResult {
  const described = prompt.description === undefined ? {} : { description: prompt.description };
  if (typeof output === "string")
    return { ...described, messages: [{ role: "user", content: text(output) }] };
  return "messages" in output ? output : { ...described, messages: output };
}
