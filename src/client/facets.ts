import { RawJson } from "../json/raw.ts";
import type { CompletionResult } from "../mcp/types.ts";
import type { CallContext } from "../tools/context.ts";
import type { Outcome, Provider, Resumption } from "../tools/provider.ts";
import type { Agreement } from "./agreement.ts";
import { resultTypeOf } from "./conversation.ts";
import { parseAsks } from "./handlers.ts";
import type { Lists } from "./lists.ts";
import type { OnBehalf } from "./on-behalf.ts";
import type { Send } from "./tool-calls.ts";
import type { Watcher } from "./watcher.ts";

export interface FacetOptions {
  readonly send: Send;
  readonly lists: Lists;
  readonly watcher: Watcher;
  readonly onBehalf: OnBehalf;
}

/** Resources, prompts and completion of a server, as far as it offers them. */
export function createFacets(
  { capabilities }: Agreement,
  options: FacetOptions,
): Pick<Provider, "resources" | "prompts" | "completion"> {
  const { send, lists, watcher, onBehalf } = options;

  const ask = async (
    method: string,
    members: { readonly [key: string]: unknown },
    context: CallContext,
  ): Promise<Outcome> => {
    const result = await onBehalf(context, (spec) => send(method, RawJson.fromValue(members), spec));
    if (resultTypeOf(result) === "complete") return { kind: "complete", result };
    const state = result.at("requestState")?.value;
    return {
      kind: "input_required",
      asks: parseAsks(result.at("inputRequests")),
      ...(state === undefined ? {} : { state }),
    };
  };

  return {
    ...(capabilities.resources === undefined
      ? {}
      : {
          resources: {
            listResources: () => lists.resources.get(),
            listTemplates: () => lists.templates.get(),
            readResource: ({ uri, resumption }, context) =>
              ask("resources/read", { uri, ...toRetry(resumption) }, context),
            ...(capabilities.resources.subscribe === true
              ? { watch: (uri: string) => watcher.watch(uri) }
              : {}),
          },
        }),
    ...(capabilities.prompts === undefined
      ? {}
      : {
          prompts: {
            listPrompts: () => lists.prompts.get(),
            getPrompt: ({ name, arguments: args, resumption }, context) =>
              ask("prompts/get", { name, arguments: args, ...toRetry(resumption) }, context),
          },
        }),
    ...(capabilities.completions === undefined
      ? {}
      : {
          completion: {
            complete: async ({ ref, argument, known }, context) => {
              const hasKnown = Object.keys(known).length > 0;
              const params = { ref, argument, ...(hasKnown ? { context: { arguments: known } } : {}) };
              const result = await onBehalf(context, (spec) =>
                send("completion/complete", RawJson.fromValue(params), spec),
              );
              return (result.at("completion")?.value ?? { values: [] }) as CompletionResult;
            },
          },
        }),
  };
}

function toRetry(resumption: Resumption | undefined): { readonly [key: string]: unknown } {
  if (resumption === undefined) return {};
  const answers = Object.fromEntries(
    Object.entries(resumption.latest ?? resumption.answers).map(([key, raw]) => [key, raw.value]),
  );
  return {
    inputResponses: answers,
    ...(resumption.state === undefined ? {} : { requestState: resumption.state }),
  };
}
