import { NotFoundError } from "../errors/not-found-error.ts";
import { RpcError } from "../errors/rpc-error.ts";
import type { Resource, ResourceTemplate } from "../mcp/types.ts";
import type { CallContext } from "./context.ts";
import { createMemberLists, type Member, type OnListError } from "./member-lists.ts";
import { answerOf, createNames } from "./names.ts";
import type { Naming } from "./namespace.ts";
import type { Provider, ResourceProvider } from "./provider.ts";

/** The resources of all members, if any has some. A URI belongs to the first member that knows it. */
export function toResources(
  members: readonly Member[],
  onListError: OnListError,
): Pick<Provider, "resources"> {
  const owners = members.filter(({ provider }) => provider.resources !== undefined);
  if (owners.length === 0) return {};
  const providers = owners.flatMap(({ provider }) => provider.resources ?? []);
  const resources = createMemberLists<Resource>(
    owners,
    async ({ provider }, context) => provider.resources?.listResources(context) ?? [],
    ({ uri }) => uri,
    onListError,
  );
  const templates = createMemberLists<ResourceTemplate>(
    owners,
    async ({ provider }, context) => provider.resources?.listTemplates(context) ?? [],
    ({ uriTemplate }) => uriTemplate,
    onListError,
  );
  return {
    resources: {
      listResources: resources.all,
      listTemplates: templates.all,
      readResource: (request, context) =>
        firstFound(providers.map((provider) => () => provider.readResource(request, context))),
      ...toWatch(providers),
    },
  };
}

function toWatch(providers: readonly ResourceProvider[]): Pick<ResourceProvider, "watch"> {
  const watchable = providers.filter(({ watch }) => watch !== undefined);
  if (watchable.length === 0) return {};
  return {
    watch: (uri, context) =>
      firstFound(
        watchable.map((provider) => async () => {
          const stop = await provider.watch?.(uri, context);
          if (stop === undefined) throw new NotFoundError("resource", uri);
          return stop;
        }),
      ),
  };
}

/** The prompts of all members under qualified names, if any has some. */
export function toPrompts(
  members: readonly Member[],
  naming: Naming,
  onListError: OnListError,
): Pick<Provider, "prompts"> {
  if (members.every(({ provider }) => provider.prompts === undefined)) return {};
  const names = promptNames(members, naming, onListError);
  return {
    prompts: {
      listPrompts: (context) => names.list(context),
      getPrompt: async (request, context) => {
        const owner = await names.find(request.name, context);
        const prompts = owner?.provider.prompts;
        if (owner === undefined || prompts === undefined) throw new NotFoundError("prompt", request.name);
        const answer = prompts.getPrompt({ ...request, name: owner.name }, context);
        return answerOf(owner, "prompt", request.name, answer);
      },
    },
  };
}

/** Completion by the member that owns the prompt, or by the first that knows the template. */
export function toCompletion(
  members: readonly Member[],
  naming: Naming,
  onListError: OnListError,
): Pick<Provider, "completion"> {
  const completions = members.flatMap(({ provider }) => provider.completion ?? []);
  if (completions.length === 0) return {};
  const names = promptNames(members, naming, onListError);
  return {
    completion: {
      complete: async (request, context) => {
        const { ref } = request;
        if (ref.type === "ref/resource") {
          return firstFound(completions.map((completion) => () => completion.complete(request, context)));
        }
        const owner = await names.find(ref.name, context);
        const completion = owner?.provider.completion;
        if (owner === undefined || completion === undefined) throw new NotFoundError("prompt", ref.name);
        return completion.complete({ ...request, ref: { ...ref, name: owner.name } }, context);
      },
    },
  };
}

function promptNames(
  members: readonly Member[],
  naming: Naming,
  onListError: OnListError,
): ReturnType<typeof createNames> {
  const listOf = (provider: Provider, context: CallContext) =>
    provider.prompts?.listPrompts(context) ?? Promise.resolve([]);
  return createNames(members, naming, listOf, onListError);
}

/** The first attempt that does not answer "not mine". */
async function firstFound<T>(attempts: readonly (() => Promise<T>)[]): Promise<T> {
  let notMine: unknown;
  for (const attempt of attempts) {
    try {
      return await attempt();
    } catch (error) {
      const isNotMine =
        error instanceof NotFoundError || (error instanceof RpcError && error.code === "rpc.invalid_params");
      if (!isNotMine) throw error;
      notMine ??= error;
    }
  }
  throw notMine;
}
