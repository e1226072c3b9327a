import type { Clock } from "@junctor/core/async";
import { RpcError } from "@junctor/core/errors";
import { RawJson } from "@junctor/core/json";
import type {
  ClientCapabilities,
  CompletionRef,
  CompletionResult,
  PromptResult,
  ResourceResult,
} from "@junctor/core/mcp";
import { defined } from "@junctor/core/options";
import {
  createCallContext,
  createCompletion,
  createOperation,
  type Operation,
  type Provider,
} from "@junctor/core/provider";
import { type QuestionHandlers, answerAll, fulfil } from "./handlers.ts";

/** What may stop a read. */
export interface ReadOptions {
  /** Cancels the request. */
  readonly signal?: AbortSignal;
}

/** Reading resources, getting prompts and completing, for people; what the server asks is answered by the handlers. */
export interface Reads {
  readResource(uri: string, options?: ReadOptions): Promise<ResourceResult>;
  getPrompt(
    name: string,
    args?: { readonly [name: string]: string },
    options?: ReadOptions,
  ): Promise<PromptResult>;
  complete(
    ref: CompletionRef,
    argument: { readonly name: string; readonly value: string },
    known?: { readonly [name: string]: string },
    options?: ReadOptions,
  ): Promise<CompletionResult>;
}

interface ReadsOptions {
  readonly provider: Pick<Provider, "call" | "offers">;
  readonly handlers: QuestionHandlers;
  readonly capabilities: ClientCapabilities;
  readonly maxRounds: number;
  readonly clock: Clock;
}

export function createReads({ provider, handlers, capabilities, maxRounds, clock }: ReadsOptions): Reads {
  const read = async (operation: Operation, what: string, { signal }: ReadOptions): Promise<unknown> => {
    const context = createCallContext(defined({ capabilities, signal }));
    if (!provider.offers(context).serves(operation.method))
      throw new RpcError("rpc.method_not_found", `The server offers no ${what}`);
    const outcome = await fulfil(
      (round) => provider.call(round === undefined ? operation : { ...operation, round }, context),
      (asks) => answerAll(asks, handlers, context.signal, clock),
      maxRounds,
    );
    return outcome.kind === "complete" ? outcome.result.value : {};
  };

  return {
    readResource: async (uri, options = {}) =>
      (await read(createOperation("resources/read", uri), "resources", options)) as ResourceResult,
    getPrompt: async (name, args = {}, options = {}) =>
      (await read(
        createOperation("prompts/get", name, { arguments: args }),
        "prompts",
        options,
      )) as PromptResult,
    complete: async (ref, argument, known = {}, options = {}) => {
      const hasKnown = Object.keys(known).length > 0;
      const params = { ref, argument, ...(hasKnown ? { context: { arguments: known } } : {}) };
      const operation = createCompletion(RawJson.fromValue(params));
      const result = (await read(operation, "completion", options)) as {
        readonly completion?: CompletionResult;
      };
      return result.completion ?? { values: [] };
    },
  };
}
