import { RpcError } from "../errors/rpc-error.ts";
import type { CompletionRef, CompletionResult } from "../mcp/types.ts";
import type { CallContext } from "./context.ts";
import type { CompletionProvider, CompletionRequest } from "./provider.ts";

/** The protocol's limit on the values of one answer. */
const maxValues = 100;

/** Suggests values for what the user typed so far; more than 100 are cut and said to be more. */
export type Completer = (
  typed: string,
  known: { readonly [name: string]: string },
  context: CallContext,
) => readonly string[] | Promise<readonly string[]>;

/** Completions living in this process. Made by {@link createCompletionRegistry}. */
export interface CompletionRegistry extends CompletionProvider {
  /** Completes an argument of the prompt with this name. */
  registerPrompt(prompt: string, argument: string, complete: Completer): void;
  /** Completes a variable of the resource template written exactly so. */
  registerTemplate(uriTemplate: string, variable: string, complete: Completer): void;
}

/** An empty registry of completions; pass it to `createRegistry({ completion })`. */
export function createCompletionRegistry(): CompletionRegistry {
  const byRef = new Map<string, Map<string, Completer>>();
  const add = (ref: string, argument: string, complete: Completer): void => {
    const completers = byRef.get(ref) ?? new Map<string, Completer>();
    byRef.set(ref, completers.set(argument, complete));
  };
  return {
    registerPrompt: (prompt, argument, complete) => add(`prompt ${prompt}`, argument, complete),
    registerTemplate: (uriTemplate, variable, complete) => add(`resource ${uriTemplate}`, variable, complete),
    complete: async ({ ref, argument, known }: CompletionRequest, context): Promise<CompletionResult> => {
      const completers = byRef.get(toKey(ref));
      if (completers === undefined)
        throw new RpcError("rpc.invalid_params", `Invalid params: nothing to complete for ${toKey(ref)}`);
      const complete = completers.get(argument.name);
      const values = complete === undefined ? [] : await complete(argument.value, known, context);
      return { values: values.slice(0, maxValues), total: values.length, hasMore: values.length > maxValues };
    },
  };
}

function toKey(ref: CompletionRef): string {
  return ref.type === "ref/prompt" ? `prompt ${ref.name}` : `resource ${ref.uri}`;
}
