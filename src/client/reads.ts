import type { Clock } from "../async/clock.ts";
import { RpcError } from "../errors/rpc-error.ts";
import type { RawJson } from "../json/raw.ts";
import type {
  ClientCapabilities,
  CompletionRef,
  CompletionResult,
  PromptResult,
  ResourceResult,
} from "../mcp/types.ts";
import { defined } from "../options/defined.ts";
import { type CallContext, createCallContext } from "../tools/context.ts";
import type { Outcome, Provider, Resumption } from "../tools/provider.ts";
import { type AskHandlers, answerAll, fulfil } from "./handlers.ts";

/** What may stop a read. */
export interface ReadOptions {
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
  readonly facets: Pick<Provider, "resources" | "prompts" | "completion">;
  readonly handlers: AskHandlers;
  readonly capabilities: ClientCapabilities;
  readonly maxRounds: number;
  readonly clock: Clock;
}

export function createReads({ facets, handlers, capabilities, maxRounds, clock }: ReadsOptions): Reads {
  const toContext = ({ signal }: ReadOptions): CallContext =>
    createCallContext(defined({ capabilities, signal }));

  const finish = (
    context: CallContext,
    attempt: (resumption: Resumption | undefined) => Promise<Outcome>,
  ): Promise<RawJson> =>
    fulfil(attempt, (asks) => answerAll(asks, handlers, context.signal, clock), maxRounds);

  return {
    readResource: async (uri, options = {}) => {
      const resources = offered(facets.resources, "resources");
      const context = toContext(options);
      const result = await finish(context, (resumption) =>
        resources.readResource({ uri, resumption }, context),
      );
      return result.value as ResourceResult;
    },
    getPrompt: async (name, args = {}, options = {}) => {
      const prompts = offered(facets.prompts, "prompts");
      const context = toContext(options);
      const result = await finish(context, (resumption) =>
        prompts.getPrompt({ name, arguments: args, resumption }, context),
      );
      return result.value as PromptResult;
    },
    complete: async (ref, argument, known = {}, options = {}) =>
      offered(facets.completion, "completion").complete({ ref, argument, known }, toContext(options)),
  };
}

function offered<T>(facet: T | undefined, what: string): T {
  if (facet === undefined) throw new RpcError("rpc.method_not_found", `The server offers no ${what}`);
  return facet;
}
