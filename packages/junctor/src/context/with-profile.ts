import { andThen } from "@junctor/core/async";
import { NotFoundError } from "@junctor/core/errors";
import { keyOf, type Tool, withMembers, withName } from "@junctor/core/mcp";
import { assertKnownKeys, keys, type KeysOf } from "@junctor/core/options";
import { type Middleware, withMiddleware, type OldProvider } from "@junctor/core/provider";
import { createGlobs } from "@junctor/server/internal";
import { delegateTo, mappedLists } from "./delegate.ts";

export interface ProfileOptions {
  /** Globs of the names and URIs that may be used; all when left out, none when empty. */
  readonly allow?: readonly string[];
  /** Globs of those that may not, whatever `allow` says. */
  readonly deny?: readonly string[];
  /** New names of tools, by the names they have. A tool is no longer known by its old name. */
  readonly rename?: { readonly [name: string]: string };
  /** Names of tools that clients which defer tools are to load at once: the new names, where there are some. */
  readonly pin?: readonly string[];
}

const optionKeys: KeysOf<ProfileOptions> = keys("allow deny rename pin");

/**
 * A part of a provider, under other names if need be. It only takes away: what it does not list cannot be used through it.
 *
 * @example
 * const reading = withProfile(provider, { allow: ["github__get_*"], rename: { github__get_issue: "issue" } });
 */
export function withProfile(provider: OldProvider, options: ProfileOptions): OldProvider {
  assertKnownKeys("withProfile", options, optionKeys);
  const { allow, deny, rename = {}, pin = [] } = options;
  const isNarrow = allow !== undefined || (deny ?? []).length > 0;
  const narrow = isNarrow ? withMiddleware(provider, [createFilter(createGlobs(allow, deny))]) : provider;
  const isSame = Object.keys(rename).length === 0 && pin.length === 0;
  return isSame ? narrow : withNames(narrow, new Map(Object.entries(rename)), new Set(pin));
}

/** Leaves the things whose names or URIs may pass, in lists and in use. */
function createFilter(mayPass: (name: string) => boolean): Middleware {
  return {
    filterTools: (items) => items.filter((item) => mayPass(keyOf(item))),
    // A resource that no list has is judged by its URI.
    beforeCall: ({ part, name }) => {
      if (part === "resources" && !mayPass(name)) throw new NotFoundError("resource", name);
    },
  };
}

function withNames(
  provider: OldProvider,
  names: ReadonlyMap<string, string>,
  pin: ReadonlySet<string>,
): OldProvider {
  const oldNames = new Map([...names].map(([old, name]) => [name, old]));
  const toTool = (tool: Tool): Tool => {
    const name = names.get(tool.name) ?? tool.name;
    const renamed = name === tool.name ? tool : withName(tool, name);
    return pin.has(name)
      ? withMembers(renamed, { _meta: { ...renamed._meta, "anthropic/alwaysLoad": true } })
      : renamed;
  };
  const lists = mappedLists<Tool>((tools) => {
    const listed = new Set(tools.map(({ name }) => name));
    // A new name hides a tool that has it already.
    const isHidden = (name: string): boolean => !names.has(name) && listed.has(oldNames.get(name) ?? "");
    return tools.filter(({ name }) => !isHidden(name)).map(toTool);
  });
  /** The provider's name for a tool; undefined for a name that no tool has here. */
  const nameIn = (tools: readonly Tool[], name: string): string | undefined => {
    const old = oldNames.get(name);
    if (old !== undefined && tools.some((tool) => tool.name === old)) return old;
    return names.has(name) ? undefined : name;
  };
  return {
    ...delegateTo(provider),
    listTools: (context) => andThen(provider.listTools(context), (tools) => lists.of(tools)),
    toolNamed: async (name, context) =>
      lists.of(await provider.listTools(context)).find((tool) => tool.name === name),
    callTool: async (call, context) => {
      const name = nameIn(await provider.listTools(context), call.name);
      if (name === undefined) throw new NotFoundError("tool", call.name);
      try {
        return await provider.callTool(name === call.name ? call : { ...call, name }, context);
      } catch (error) {
        const isMissing = error instanceof NotFoundError && error.what === "tool" && error.id === name;
        throw isMissing ? new NotFoundError("tool", call.name) : error;
      }
    },
    listMeta: (list) => provider.listMeta?.(lists.originOf(list)),
    get cacheHints() {
      return provider.cacheHints;
    },
  };
}
