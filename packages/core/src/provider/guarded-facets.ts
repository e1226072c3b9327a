import type { Awaitable } from "../async/index.ts";
import { RawJson } from "../json/index.ts";
import type { CompletionRef, CompletionResult } from "../mcp/index.ts";
import type { CallContext } from "./context.ts";
import { type FilteredLists, type ListFilter, refOf } from "./filtered-lists.ts";
import { filterSkills, guardSkills } from "./filtered-skills.ts";
import type { ServeTask } from "./guarded-tasks.ts";
import type {
  CompletionProvider,
  CompletionRequest,
  OldOutcome,
  OldProvider,
  ToolCall,
  ToolOutcome,
} from "./old.ts";

/** What a provider offers besides tools. */
type Facets = Pick<OldProvider, "resources" | "prompts" | "completion" | "skills">;

/** The hooks of a chain of middlewares, as the facets use them. */
interface FacetGuard {
  readonly lists: FilteredLists;
  readonly filters: readonly ListFilter[];
  /** Makes a call through all hooks; `serve` answers it in the end, by default the facet of its kind. */
  run(call: ToolCall, context: CallContext, serve?: ServeTask): Awaitable<ToolOutcome>;
  /** Throws unless every filter shows what a call is of. */
  judge(call: ToolCall, context: CallContext): Awaitable<void>;
}

const nothing = RawJson.fromText("{}");

/** The facets of a provider with hooks around them: each request is a call of its kind. */
export function guardFacets(provider: OldProvider, { lists, filters, run, judge }: FacetGuard): Facets {
  const { resources, prompts, completion, skills } = provider;
  const watch = resources?.watch?.bind(resources);
  return {
    ...(resources === undefined
      ? {}
      : {
          resources: {
            listResources: async (context) => lists.resources.list(context),
            listTemplates: async (context) => lists.templates.list(context),
            readResource: async ({ uri, round }, context) =>
              withoutTask(await run({ kind: "resource", name: uri, arguments: nothing, round }, context)),
            ...(watch === undefined
              ? {}
              : {
                  watch: async (uri: string, context: CallContext) => {
                    await judge({ kind: "resource", name: uri, arguments: nothing }, context);
                    return watch(uri, context);
                  },
                }),
          },
        }),
    ...(prompts === undefined
      ? {}
      : {
          prompts: {
            listPrompts: async (context) => lists.prompts.list(context),
            getPrompt: async ({ name, arguments: args, round }, context) =>
              withoutTask(
                await run({ kind: "prompt", name, arguments: RawJson.fromValue(args), round }, context),
              ),
          },
        }),
    ...(completion === undefined ? {} : { completion: guardCompletion(run) }),
    ...(skills === undefined ? {} : { skills: guardSkills(filterSkills(skills, filters), run) }),
  };
}

/** Only a tool can go on as a task. */
function withoutTask(outcome: ToolOutcome): OldOutcome {
  if (outcome.kind === "task")
    throw new TypeError("A middleware made a task of a call that is not a tool call");
  return outcome;
}

function guardCompletion(run: FacetGuard["run"]): CompletionProvider {
  return {
    complete: async ({ ref, argument, known }, context) => {
      const name = ref.type === "ref/prompt" ? ref.name : ref.uri;
      const args = RawJson.fromValue({ ref, argument, context: { arguments: known } });
      const outcome = await run({ kind: "completion", name, arguments: args }, context);
      if (outcome.kind !== "complete") throw new TypeError("A completion cannot ask its caller anything");
      return (outcome.result.value as { readonly completion: CompletionResult }).completion;
    },
  };
}

/** Makes a call of another kind than a tool. */
export function callFacet(
  provider: OldProvider,
  call: ToolCall,
  context: CallContext,
): Awaitable<ToolOutcome> {
  const { kind, name, arguments: args, round } = call;
  const { resources, prompts, completion } = provider;
  if (kind === "resource" && resources !== undefined)
    return resources.readResource({ uri: name, round }, context);
  if (kind === "prompt" && prompts !== undefined) {
    const values = args.value as { readonly [name: string]: string };
    return prompts.getPrompt({ name, arguments: values, round }, context);
  }
  if (kind === "completion" && completion !== undefined)
    return completion.complete(toCompletion(call), context).then((result) => ({
      kind: "complete",
      result: RawJson.fromValue({ completion: result }),
    }));
  return provider.callTool(call, context);
}

/** A middleware may have changed the name. */
function toCompletion(call: ToolCall): CompletionRequest {
  const { argument, context } = call.arguments.value as {
    readonly argument: CompletionRequest["argument"];
    readonly context: { readonly arguments: CompletionRequest["known"] };
  };
  const ref = refOf(call);
  const renamed: CompletionRef =
    ref.type === "ref/prompt" ? { ...ref, name: call.name } : { ...ref, uri: call.name };
  return { ref: renamed, argument, known: context.arguments };
}

/** The facets of a provider as they are. */
export function facetsOf({ resources, prompts, completion, skills }: OldProvider): Facets {
  return {
    ...(skills === undefined ? {} : { skills }),
    ...(resources === undefined ? {} : { resources }),
    ...(prompts === undefined ? {} : { prompts }),
    ...(completion === undefined ? {} : { completion }),
  };
}

/** The facets that `base` has, each looked up again for every request. */
export function followFacets(base: OldProvider, current: () => OldProvider): Facets {
  const { resources, prompts, completion, skills } = base;
  const { resources: ours, prompts: asked, completion: completed, skills: listed } = toFollowed(current);
  const { watch: _, ...unwatched } = ours;
  return {
    ...(resources === undefined ? {} : { resources: resources.watch === undefined ? unwatched : ours }),
    ...(prompts === undefined ? {} : { prompts: asked }),
    ...(completion === undefined ? {} : { completion: completed }),
    ...(skills === undefined ? {} : { skills: listed }),
  };
}

function toFollowed(current: () => OldProvider): {
  readonly [Facet in keyof Facets]-?: NonNullable<Facets[Facet]>;
} {
  const missing = (): Promise<never> => Promise.reject(new TypeError("The provider has no such facet"));
  return {
    resources: {
      listResources: (context) => current().resources?.listResources(context) ?? missing(),
      listTemplates: (context) => current().resources?.listTemplates(context) ?? missing(),
      readResource: (request, context) => current().resources?.readResource(request, context) ?? missing(),
      watch: (uri, context) => current().resources?.watch?.(uri, context) ?? missing(),
    },
    prompts: {
      listPrompts: (context) => current().prompts?.listPrompts(context) ?? missing(),
      getPrompt: (request, context) => current().prompts?.getPrompt(request, context) ?? missing(),
    },
    completion: {
      complete: (request, context) => current().completion?.complete(request, context) ?? missing(),
    },
    skills: {
      listSkills: (context) => current().skills?.listSkills(context) ?? missing(),
      getSkill: (uri, context) => current().skills?.getSkill(uri, context) ?? missing(),
      readDirectory: (uri, context) => current().skills?.readDirectory?.(uri, context) ?? missing(),
    },
  };
}
