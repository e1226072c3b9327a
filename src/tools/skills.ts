import { NotFoundError } from "../errors/not-found-error.ts";
import type { Change, ResourceProvider, SkillProvider } from "./provider.ts";

/** Skills with the files they are made of: `loadSkills` makes one from a folder. */
export interface SkillSource extends SkillProvider {
  /** Serves the files of the skills, and lists their `SKILL.md`. */
  readonly resources: ResourceProvider;
  onChange?(listener: (change: Change) => void): () => void;
}

/** Files of skills and other resources as one facet. A URI that both have is that of a skill. */
export function withSkillFiles(
  files: ResourceProvider,
  others: ResourceProvider | undefined,
): ResourceProvider {
  if (others === undefined) return files;
  let joined: { readonly parts: readonly unknown[]; readonly list: readonly never[] } | undefined;
  const join = <T>(one: readonly T[], other: readonly T[]): readonly T[] => {
    // A list that did not change is the same array.
    if (joined?.parts[0] !== one || joined.parts[1] !== other)
      joined = { parts: [one, other], list: Object.freeze([...one, ...other]) as readonly never[] };
    return joined.list;
  };
  const first = async <T>(
    ask: (provider: ResourceProvider) => Promise<T> | undefined,
    uri: string,
  ): Promise<T> => {
    try {
      const found = await ask(files);
      if (found !== undefined) return found;
    } catch (error) {
      if (!(error instanceof NotFoundError)) throw error;
    }
    const found = await ask(others);
    if (found === undefined) throw new NotFoundError("resource", uri);
    return found;
  };
  return {
    listResources: async (context) =>
      join(await files.listResources(context), await others.listResources(context)),
    listTemplates: (context) => others.listTemplates(context),
    readResource: (request, context) =>
      first((provider) => provider.readResource(request, context), request.uri),
    watch: (uri, context) => first((provider) => provider.watch?.(uri, context), uri),
  };
}
