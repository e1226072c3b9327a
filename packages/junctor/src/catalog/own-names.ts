import { andThen, type Awaitable } from "@junctor/core/async";
import { type UriNames, renamed, type View } from "@junctor/core/compose";
import { NotFoundError } from "@junctor/core/errors";
import { originKey, viewUriOf, withViewUri, type Skill, type Tool, withMembers } from "@junctor/core/mcp";
import type { CallContext, OldChange, CallerInfo, OldProvider } from "@junctor/core/provider";
import { readResultName } from "../context/index.ts";

/** How the things of one server are called in the gateway. */
interface OwnNames {
  /** The part of the catalog that has this server's things alone. */
  readonly viewFor: (caller: CallerInfo) => View;
  readonly uris: () => UriNames | undefined;
}

/**
 * The things of one server under the names and URIs that the server itself uses. It is outside of the middleware: rules, limits and records
 * see the names of the gateway.
 */
export function withOwnNames(provider: OldProvider, { viewFor, uris }: OwnNames): OldProvider {
  const { resources, prompts, completion, skills } = provider;
  const toPublic = (own: string): string => uris()?.toPublic(own) ?? own;
  const toOwn = (uri: string): string => uris()?.toOwn(uri) ?? uri;
  const inResults = { toPublic: toOwn };
  const lists = createOwnLists();
  const publicChanges = new WeakMap<OldChange, OldChange>();
  const watch = resources?.watch?.bind(resources);
  const readDirectory = skills?.readDirectory?.bind(skills);

  const publicNameOf = (part: "toolClaims" | "promptClaims", own: string, context: CallContext): string => {
    for (const [name, claim] of viewFor(context)[part]) if (claim.ownName === own) return name;
    // Not the server's: it reads on in a result that was cut.
    if (part === "toolClaims" && own === readResultName) return own;
    throw new NotFoundError(part === "toolClaims" ? "tool" : "prompt", own);
  };
  const toOwnTool = (tool: Tool, context: CallContext): Tool => {
    const { _meta, ...others } = tool;
    const { [originKey]: _, ...meta } = _meta ?? {};
    const uri = viewUriOf(tool);
    const shown = uri === undefined ? meta : withViewUri(meta, toOwn(uri));
    const name = viewFor(context).toolClaims.get(others.name)?.ownName ?? others.name;
    return withMembers(tool, { name, _meta: Object.keys(shown).length === 0 ? undefined : shown });
  };
  const toOwnSkill = (skill: Skill): Skill => ({
    ...skill,
    uri: toOwn(skill.uri),
    resources:
      skill.resources === "dynamic"
        ? skill.resources
        : skill.resources.map((file) => ({ ...file, uri: toOwn(file.uri) })),
  });

  return {
    listTools: (context) =>
      andThen(provider.listTools(context), (tools) => lists.map(tools, (tool) => toOwnTool(tool, context))),
    toolNamed: (name, context): Awaitable<Tool | undefined> =>
      provider.toolNamed?.(publicNameOf("toolClaims", name, context), context),
    callTool: (call, context) =>
      renamed(
        provider.callTool({ ...call, name: publicNameOf("toolClaims", call.name, context) }, context),
        inResults,
      ),
    ...(resources === undefined
      ? {}
      : {
          resources: {
            listResources: async (context) =>
              lists.map(await resources.listResources(context), (item) =>
                withMembers(item, { uri: toOwn(item.uri) }),
              ),
            listTemplates: (context) => resources.listTemplates(context),
            readResource: async (request, context) =>
              renamed(resources.readResource({ ...request, uri: toPublic(request.uri) }, context), inResults),
            ...(watch === undefined
              ? {}
              : { watch: (uri: string, context: CallContext) => watch(toPublic(uri), context) }),
          },
        }),
    ...(prompts === undefined
      ? {}
      : {
          prompts: {
            listPrompts: async (context) =>
              lists.map(await prompts.listPrompts(context), (item) => {
                const name = viewFor(context).promptClaims.get(item.name)?.ownName ?? item.name;
                return withMembers(item, { name });
              }),
            getPrompt: async (request, context) =>
              renamed(
                prompts.getPrompt(
                  { ...request, name: publicNameOf("promptClaims", request.name, context) },
                  context,
                ),
                inResults,
              ),
          },
        }),
    ...(completion === undefined
      ? {}
      : {
          completion: {
            complete: async (request, context) => {
              const { ref } = request;
              const named =
                ref.type === "ref/prompt"
                  ? { ...ref, name: publicNameOf("promptClaims", ref.name, context) }
                  : { ...ref, uri: toPublic(ref.uri) };
              return completion.complete({ ...request, ref: named }, context);
            },
          },
        }),
    ...(skills === undefined
      ? {}
      : {
          skills: {
            listSkills: async (context) => lists.map(await skills.listSkills(context), toOwnSkill),
            getSkill: async (uri, context) => toOwnSkill(await skills.getSkill(toPublic(uri), context)),
            ...(readDirectory === undefined
              ? {}
              : {
                  readDirectory: async (uri: string, context: CallContext) => {
                    const children = await readDirectory(toPublic(uri), context);
                    return children.map((child) => ({ ...child, uri: toOwn(child.uri) }));
                  },
                }),
          },
        }),
    get tasks() {
      return provider.tasks;
    },
    get cacheHints() {
      return provider.cacheHints;
    },
    listMeta: (list) => provider.listMeta?.(lists.originOf(list)),
    extensionsFor: (caller) => provider.extensionsFor?.(caller) ?? {},
    onChange: (listener) =>
      provider.onChange?.((change) => {
        const own = change.kind === "resource" ? { ...change, uri: toOwn(change.uri) } : change;
        publicChanges.set(own, change);
        listener(own);
      }) ?? (() => {}),
    mayHear: (change, callerInfo) =>
      provider.mayHear?.(publicChanges.get(change) ?? change, callerInfo) !== false,
  };
}

/** Lists with other names. A list that did not change is the same array, and it is known which list it was made from. */
function createOwnLists(): {
  map<T extends object>(list: readonly T[], toOwn: (item: T) => T): readonly T[];
  originOf(list: readonly object[]): readonly object[];
} {
  const made = new WeakMap<readonly object[], readonly object[]>();
  const origins = new WeakMap<readonly object[], readonly object[]>();
  return {
    map: <T extends object>(list: readonly T[], toOwn: (item: T) => T) => {
      const known = made.get(list) as readonly T[] | undefined;
      if (known !== undefined) return known;
      const own = Object.freeze(list.map(toOwn));
      if (Object.isFrozen(list)) made.set(list, own);
      origins.set(own, list);
      return own;
    },
    originOf: (list) => origins.get(list) ?? list,
  };
}
