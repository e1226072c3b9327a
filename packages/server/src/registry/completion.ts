import { RpcError } from "@junctor/core/errors";
import { RawJson } from "@junctor/core/json";
import { type CompletionRef, type CompletionResult, parseUriTemplate } from "@junctor/core/mcp";
import { suggest } from "@junctor/core/options";
import {
  type CallContext,
  type Completion,
  emptyListing,
  type Provider,
  readCompletion,
} from "@junctor/core/provider";
import { describeValue } from "@junctor/core/schema";
import { offering } from "./members.ts";

/** The protocol's limit on the values of one answer. */
const maxValues = 100;

/** Suggests values for what the user typed so far; beyond 100 the list is cut and marked as incomplete. */
export type Completer = (
  typed: string,
  known: { readonly [name: string]: string },
  context: CallContext,
) => readonly string[] | Promise<readonly string[]>;

/** The completions of this process. Made by {@link createCompletionRegistry}. */
export interface CompletionRegistry extends Provider {
  /** Completes an argument of the prompt with this name. Throws at once for a bad name, a completer that is not a function, or a second completer. */
  registerPrompt(prompt: string, argument: string, complete: Completer): void;
  /** The same for a variable of the resource template with exactly this text. Throws also for a variable that the template lacks. */
  registerTemplate(uriTemplate: string, variable: string, complete: Completer): void;
}

/** An empty registry of completions; pass it to `createRegistry({ completion })`. */
export function createCompletionRegistry(): CompletionRegistry {
  const byRef = new Map<string, Map<string, Completer>>();
  const add = (ref: string, argument: string, complete: Completer): void => {
    const what = `Completion of ${ref}`;
    if (typeof argument !== "string")
      throw new TypeError(
        `${what}: the name of the argument must be a string, but is ${describeValue(argument)}`,
      );
    if (typeof complete !== "function")
      throw new TypeError(
        `${what}, ${argument}: the completer must be a function such as (typed) => names.filter((name) => name.startsWith(typed)), ` +
          `but is ${describeValue(complete)}`,
      );
    if (byRef.get(ref)?.has(argument) === true)
      throw new TypeError(`${what}, ${argument}: is registered already`);
    const completers = byRef.get(ref) ?? new Map<string, Completer>();
    byRef.set(ref, completers.set(argument, complete));
  };
  const complete = async (
    { ref, argument, known }: Completion,
    context: CallContext,
  ): Promise<CompletionResult> => {
    const completers = byRef.get(toKey(ref));
    if (completers === undefined)
      throw new RpcError("rpc.invalid_params", `Invalid params: nothing to complete for ${toKey(ref)}`);
    const completer = completers.get(argument.name);
    const values = completer === undefined ? [] : await completer(argument.value, known, context);
    if (!Array.isArray(values) || !values.every((value) => typeof value === "string"))
      throw new TypeError(
        `Completion of ${toKey(ref)}, ${argument.name}: the completer gave ${describeValue(values)}; it must give an array of strings`,
      );
    return { values: values.slice(0, maxValues), total: values.length, hasMore: values.length > maxValues };
  };
  return {
    list: () => emptyListing,
    call: async (operation, context) => {
      const completion = await complete(readCompletion(operation), context);
      return { kind: "complete", result: RawJson.fromValue({ completion }) };
    },
    offers: () => completionOffers,
    registerPrompt: (prompt, argument, complete) => {
      if (typeof prompt !== "string" || prompt === "")
        throw new TypeError(
          `Completion of a prompt: the name of the prompt must be a text that is not empty, but is ${describeValue(prompt)}`,
        );
      add(`prompt ${prompt}`, argument, complete);
    },
    registerTemplate: (uriTemplate, variable, complete) => {
      if (typeof uriTemplate !== "string")
        throw new TypeError(
          `Completion of a resource template: the template must be a string, such as users://{id}, but is ${describeValue(uriTemplate)}`,
        );
      const { variables } = parseUriTemplate(uriTemplate);
      if (typeof variable === "string" && !variables.includes(variable))
        throw new TypeError(
          `Completion of resource ${uriTemplate}: it has no variable ${JSON.stringify(variable)}; ` +
            suggest(variable, variables, `its variables are ${variables.join(", ")}`),
        );
      add(`resource ${uriTemplate}`, variable, complete);
    },
  };
}

const completionOffers = offering("completion/complete");

function toKey(ref: CompletionRef): string {
  return ref.type === "ref/prompt" ? `prompt ${ref.name}` : `resource ${ref.uri}`;
}
