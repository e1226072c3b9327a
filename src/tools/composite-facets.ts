import { NotFoundError } from "../errors/not-found-error.ts";
import { RpcError } from "../errors/rpc-error.ts";
import { UriTemplateError } from "../errors/uri-template-error.ts";
import type { Resource, ResourceTemplate } from "../mcp/types.ts";
import { parseUriTemplate } from "../mcp/uri-template.ts";
import type { CallContext } from "./context.ts";
import { createMemberLists, type Member, type OnListError } from "./member-lists.ts";
import { answerOf, createNames } from "./names.ts";
import type { Naming } from "./namespace.ts";
import type { Hearer, Provider, ResourceChange, ResourceProvider } from "./provider.ts";

/** The resources of all members, if any has some. A URI belongs to the first member that knows it. */
export function toResources(
  members: readonly Member[],
  onListError: OnListError,
): Pick<Provider, "resources"> {
  const owners = members.filter(({ provider }) => provider.resources !== undefined);
  if (owners.length === 0) return {};
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

  /** Who lists the URI, or a template it fits; nobody else is asked then. A URI no list knows may be anybody's. */
  const candidates = async (uri: string, context: CallContext): Promise<readonly ResourceProvider[]> => {
    const lists = await Promise.all(
      owners.map(async (member) => ({
        member,
        isOwn: (await resources.of(member, context)).some((resource) => resource.uri === uri),
        fits: (await templates.of(member, context)).some(({ uriTemplate }) => fitsTemplate(uri, uriTemplate)),
      })),
    );
    const owner = lists.find(({ isOwn }) => isOwn) ?? lists.find(({ fits }) => fits);
    const asked = owner === undefined ? owners : [owner.member];
    return asked.flatMap(({ provider }) => provider.resources ?? []);
  };
  const isWatchable = owners.some(({ provider }) => provider.resources?.watch !== undefined);
  const judges = owners.flatMap(({ provider }) => (provider.resources?.mayHear ? [provider.resources] : []));
  return {
    resources: {
      listResources: resources.all,
      listTemplates: templates.all,
      readResource: async (request, context) => {
        const asked = await candidates(request.uri, context);
        return firstFound(asked.map((provider) => () => provider.readResource(request, context)));
      },
      ...(isWatchable
        ? {
            watch: async (uri: string, context: CallContext) => {
              const asked = await candidates(uri, context);
              return firstFound(asked.map((provider) => () => watch(provider, uri, context)));
            },
          }
        : {}),
      ...(judges.length === 0
        ? {}
        : {
            mayHear: (change: ResourceChange, hearer: Hearer) =>
              judges.every((judge) => judge.mayHear?.(change, hearer) !== false),
          }),
    },
  };
}

async function watch(provider: ResourceProvider, uri: string, context: CallContext): Promise<() => void> {
  const stop = await provider.watch?.(uri, context);
  if (stop === undefined) throw new NotFoundError("resource", uri);
  return stop;
}

/** A template nobody can read fits nothing. */
function fitsTemplate(uri: string, uriTemplate: string): boolean {
  try {
    return parseUriTemplate(uriTemplate).match(uri) !== undefined;
  } catch (error) {
    if (error instanceof UriTemplateError) return false;
    throw error;
  }
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

/** The first attempt that succeeds. One that fails says nothing about the others; if all do, the gravest reason is given. */
async function firstFound<T>(attempts: readonly (() => Promise<T>)[]): Promise<T> {
  let notMine: unknown;
  let failure: unknown;
  for (const attempt of attempts) {
    try {
      return await attempt();
    } catch (error) {
      const isNotMine =
        error instanceof NotFoundError || (error instanceof RpcError && error.code === "rpc.invalid_params");
      if (isNotMine) notMine ??= error;
      else failure ??= error;
    }
  }
  throw failure ?? notMine;
}
