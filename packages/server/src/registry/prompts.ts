import { NotFoundError, RpcError } from "@junctor/core/errors";
import { assertDefinition } from "@junctor/core/fit";
import { RawJson } from "@junctor/core/json";
import type { Prompt, PromptMessage, PromptResult } from "@junctor/core/mcp";
import { assertKnownKeys, keys, type KeysOf } from "@junctor/core/options";
import {
  type AnswerReader,
  isInputRequired,
  noAnswers,
  readAnswers,
  describeBlockFault,
  emptyListing,
  isContent,
  text,
  type CallContext,
  withContext,
  type InputRequired,
  type Outcome,
  type Provider,
} from "@junctor/core/provider";
import { describeValue } from "@junctor/core/schema";
import { createNamedEntries, offering } from "./members.ts";
import { assertHandler, assertSpec } from "./tool-spec.ts";

/** What a prompt returns: the user's message as text, messages, or a whole result. */
export type PromptOutput = string | readonly PromptMessage[] | PromptResult | InputRequired;

/** What a prompt gets besides its arguments. */
export interface PromptContext extends CallContext {
  readonly answers: AnswerReader;
  readonly state: unknown;
}

/** Writes the messages of a prompt from its arguments, or asks the user first. */
export type PromptHandler = (
  args: { readonly [name: string]: string },
  context: PromptContext,
) => PromptOutput | Promise<PromptOutput>;

/** The prompts of this process. Made by {@link createPromptRegistry}. */
export interface PromptRegistry extends Provider {
  /**
   * Adds a prompt. Arguments marked `required` are there when the handler runs. Throws at once for a bad or taken name, a key
   * of the spec that is unknown or has a wrong value, and a missing handler.
   *
   * @example
   * prompts.register("review", { arguments: [{ name: "code", required: true }] }, ({ code }) => `Review this:\n${code}`);
   */
  register(name: string, spec: Omit<Prompt, "name">, handler: PromptHandler): void;
  /** Removes a prompt; false when there was none. */
  unregister(name: string): boolean;
}

interface PromptEntry {
  readonly prompt: Prompt;
  readonly handler: PromptHandler;
}

const specKeys: KeysOf<Omit<Prompt, "name">> = keys("title description arguments icons _meta");
/** The names that other libraries have for these keys. */
const namesElsewhere = { argsSchema: "arguments", args: "arguments", parameters: "arguments", meta: "_meta" };

/** An empty registry of prompts; pass it to `createRegistry({ prompts })`. */
export function createPromptRegistry(): PromptRegistry {
  const catalog = createNamedEntries("The prompt", "prompts", (entry: PromptEntry) => entry.prompt);
  return {
    list: (part) => (part === "prompts" ? (catalog.list() as never) : emptyListing),
    call: async ({ name, arguments: args, round }, context): Promise<Outcome> => {
      const entry = catalog.entries.get(name);
      if (entry === undefined) throw new NotFoundError("prompt", name);
      const given = args.value as { readonly [name: string]: string };
      assertArguments(entry.prompt, given);
      const answers = round === undefined ? noAnswers : readAnswers(round);
      const own = withContext(context, { answers, state: round?.state });
      const output = await entry.handler(given, own);
      if (isInputRequired(output)) return output;
      return { kind: "complete", result: RawJson.fromValue(toPromptResult(output, entry.prompt)) };
    },
    offers: () => promptOffers,
    onChange: catalog.onChange,
    register: (name, spec, handler) => {
      const what = `Prompt ${JSON.stringify(name)}`;
      assertSpec(what, spec, "register(name, {}, handler)");
      assertKnownKeys(what, spec, specKeys, namesElsewhere);
      assertHandler(what, handler);
      const { arguments: args } = spec;
      if (args !== undefined && !Array.isArray(args))
        throw new TypeError(
          `${what}: arguments must be an array such as [{ name: "city", required: true }], ` +
            `but is ${"~standard" in Object(args) ? "a schema" : describeValue(args)}; callers always send strings`,
        );
      const prompt: Prompt = Object.freeze({ name, ...spec });
      assertDefinition("prompts", what, prompt);
      catalog.add(name, { prompt, handler });
    },
    unregister: (name) => catalog.remove(name),
  };
}

const promptOffers = offering("prompts/list", "prompts/get");

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
  const isWhole = typeof output === "object" && output !== null && "messages" in output;
  const messages: unknown = isWhole ? output.messages : output;
  const fault = findMessageFault(messages);
  if (fault !== undefined)
    throw new TypeError(`Prompt ${JSON.stringify(prompt.name)}: the handler gave ${fault}`);
  return isWhole ? output : { ...described, messages: messages as readonly PromptMessage[] };
}

/** What is wrong with the messages of a handler, and what to write. */
function findMessageFault(messages: unknown): string | undefined {
  const example = 'a string, or messages such as [{ role: "user", content: { type: "text", text: "…" } }]';
  if (!Array.isArray(messages)) return `${describeValue(messages)}; it must give ${example}`;
  for (const [index, message] of (messages as readonly unknown[]).entries()) {
    const { role, content } = (message ?? {}) as { readonly role?: unknown; readonly content?: unknown };
    if (role !== "user" && role !== "assistant")
      return `messages[${index}] with the role ${describeValue(role)}; the roles are user and assistant`;
    if (!isContent(content)) return `messages[${index}] whose content ${describeBlockFault(content)}`;
  }
  return undefined;
}
