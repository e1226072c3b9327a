import { RawJson } from "../json/raw.ts";
import type { CompletionResult } from "../mcp/types.ts";
import type { CallContext } from "../tools/context.ts";
import type { Outcome, Provider } from "../tools/provider.ts";
import type { Agreement } from "./conversation.ts";
import type { Send } from "./conversations.ts";
import { toRoundOutcome, toRoundParams } from "./forward.ts";
import type { Lists } from "./lists.ts";
import type { OnBehalf } from "./on-behalf.ts";
import type { Watcher } from "./watcher.ts";

interface FacetOptions {
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

  const ask = async (method: string, params: RawJson, context: CallContext): Promise<Outcome> =>
    toRoundOutcome(await onBehalf(context, (spec) => send(method, params, spec)));

  return {
    ...(capabilities.resources === undefined
      ? {}
      : {
          resources: {
            listResources: () => lists.resources.get(),
            listTemplates: () => lists.templates.get(),
            readResource: ({ uri, resumption }, context) =>
              ask("resources/read", toRoundParams([`{"uri":${JSON.stringify(uri)}`], resumption), context),
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
            getPrompt: ({ name, arguments: args, resumption }, context) => {
              const head = JSON.stringify({ name, arguments: args }).slice(0, -1);
              return ask("prompts/get", toRoundParams([head], resumption), context);
            },
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
