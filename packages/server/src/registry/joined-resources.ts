import { NotFoundError } from "@junctor/core/errors";
import type { ResourceProvider } from "@junctor/core/provider";

/** The resources of those parts that are there at the moment; undefined while none is. The same object while the parts are the same. */
export function followResources(
  parts: () => readonly (ResourceProvider | undefined)[],
): () => ResourceProvider | undefined {
  let last: readonly (ResourceProvider | undefined)[] = [];
  let joined: ResourceProvider | undefined;
  return () => {
    const now = parts();
    if (now.some((part, index) => part !== last[index])) {
      last = now;
      joined = join(now.filter((part) => part !== undefined));
    }
    return joined;
  };
}

/** Of a URI that several have, the first one's counts. */
function join(all: readonly ResourceProvider[]): ResourceProvider | undefined {
  if (all.length < 2) return all[0];
  const joinListed = createJoin();
  const joinTemplates = createJoin();
  const firstOf = async <T>(
    uri: string,
    ask: (provider: ResourceProvider) => Promise<T> | undefined,
  ): Promise<T> => {
    for (const provider of all) {
      try {
        const found = await ask(provider);
        if (found !== undefined) return found;
      } catch (error) {
        if (!(error instanceof NotFoundError)) throw error;
      }
    }
    throw new NotFoundError("resource", uri);
  };
  return {
    listResources: async (context) =>
      joinListed(await Promise.all(all.map((provider) => provider.listResources(context)))),
    listTemplates: async (context) =>
      joinTemplates(await Promise.all(all.map((provider) => provider.listTemplates(context)))),
    readResource: (request, context) =>
      firstOf(request.uri, (provider) => provider.readResource(request, context)),
    watch: (uri, context) => firstOf(uri, (provider) => provider.watch?.(uri, context)),
  };
}

/** Joins lists. While each of them is the same array, so is the whole. */
function createJoin(): <T>(parts: readonly (readonly T[])[]) => readonly T[] {
  let last: readonly (readonly unknown[])[] = [];
  let whole: readonly unknown[] = [];
  return <T>(parts: readonly (readonly T[])[]) => {
    if (parts.length !== last.length || parts.some((part, index) => part !== last[index])) {
      last = parts;
      whole = Object.freeze(parts.flat());
    }
    return whole as readonly T[];
  };
}
