import type { Clock } from "@junctor/core/async";
import { RpcError } from "@junctor/core/errors";
import { RawJson, editMembers } from "@junctor/core/json";
import {
  declaredExtension,
  extensionIds,
  type ClientCapabilities,
  type CompletionRef,
  type CompletionResult,
  type PromptResult,
  type ResourceResult,
} from "@junctor/core/mcp";
import { defined } from "@junctor/core/options";
import {
  type CallContext,
  createCallContext,
  type CompletionRequest,
  type OldOutcome,
  type PromptRequest,
  type OldProvider,
  type ResourceRequest,
  type Round,
} from "@junctor/core/provider";
import type { Agreement } from "./conversation.ts";
import type { Send } from "./conversations.ts";
import { toRoundOutcome, toRoundParams } from "./forward.ts";
import { type QuestionHandlers, answerAll, fulfil } from "./handlers.ts";
import type { Lists } from "./lists.ts";
import type { OnBehalf } from "./on-behalf.ts";
import { createTaskFacet } from "./task-facet.ts";
import type { Watcher } from "./watcher.ts";

interface FacetOptions {
  readonly send: Send;
  readonly lists: Lists;
  readonly watcher: Watcher;
  readonly onBehalf: OnBehalf;
}

/** Resources, prompts, completion and tasks of a server, as far as it offers them. */
export function createFacets(
  { capabilities, mode }: Agreement,
  options: FacetOptions,
): Pick<OldProvider, "resources" | "prompts" | "completion" | "tasks"> {
  const { send, lists, watcher, onBehalf } = options;

  const ask = async (
    method: string,
    about: string,
    params: RawJson,
    context: CallContext,
  ): Promise<OldOutcome> =>
    toRoundOutcome(await onBehalf(context, `${method} ${about}`, (spec) => send(method, params, spec)));

  const { resources, prompts, completions } = capabilities;
  const hasTasks =
    mode.kind === "modern" && declaredExtension(capabilities, extensionIds.tasks) !== undefined;
  return defined({
    methods: {
      has: () => true,
      serve: (method: string, params: RawJson, context: CallContext) =>
        onBehalf(context, method, (spec) => send(method, withoutMeta(params), spec)),
    },
    tasks: hasTasks ? createTaskFacet({ send, onBehalf }) : undefined,
    resources: resources && {
      listResources: () => lists.resources.get(),
      listTemplates: () => lists.templates.get(),
      readResource: ({ uri, round }: ResourceRequest, context: CallContext) =>
        ask("resources/read", "", toRoundParams([`{"uri":${JSON.stringify(uri)}`], round), context),
      ...(resources.subscribe === true ? { watch: (uri: string) => watcher.watch(uri) } : {}),
    },
    prompts: prompts && {
      listPrompts: () => lists.prompts.get(),
      getPrompt: ({ name, arguments: args, round }: PromptRequest, context: CallContext) => {
        const head = JSON.stringify({ name, arguments: args }).slice(0, -1);
        return ask("prompts/get", name, toRoundParams([head], round), context);
      },
    },
    completion: completions && {
      complete: async ({ ref, argument, known }: CompletionRequest, context: CallContext) => {
        const hasKnown = Object.keys(known).length > 0;
        const params = { ref, argument, ...(hasKnown ? { context: { arguments: known } } : {}) };
        const result = await onBehalf(context, "completion/complete", (spec) =>
          send("completion/complete", RawJson.fromValue(params), spec),
        );
        return (result.at("completion")?.value ?? { values: [] }) as CompletionResult;
      },
    },
  });
}

/** Each hop writes its own `_meta`. */
function withoutMeta(params: RawJson): RawJson {
  return params.has("_meta") ? editMembers(params, { _meta: undefined }) : params;
}

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
  readonly facets: Pick<OldProvider, "resources" | "prompts" | "completion">;
  readonly handlers: QuestionHandlers;
  readonly capabilities: ClientCapabilities;
  readonly maxRounds: number;
  readonly clock: Clock;
}

export function createReads({ facets, handlers, capabilities, maxRounds, clock }: ReadsOptions): Reads {
  const toContext = ({ signal }: ReadOptions): CallContext =>
    createCallContext(defined({ capabilities, signal }));

  const finish = (
    context: CallContext,
    attempt: (round: Round | undefined) => Promise<OldOutcome>,
  ): Promise<RawJson> =>
    fulfil(attempt, (asks) => answerAll(asks, handlers, context.signal, clock), maxRounds).then(
      ({ result }) => result,
    );

  return {
    readResource: async (uri, options = {}) => {
      const resources = offered(facets.resources, "resources");
      const context = toContext(options);
      const result = await finish(context, (round) => resources.readResource({ uri, round }, context));
      return result.value as ResourceResult;
    },
    getPrompt: async (name, args = {}, options = {}) => {
      const prompts = offered(facets.prompts, "prompts");
      const context = toContext(options);
      const result = await finish(context, (round) =>
        prompts.getPrompt({ name, arguments: args, round }, context),
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
