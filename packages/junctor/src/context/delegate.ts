import type { OldProvider } from "@junctor/core/provider";

/** Everything of a provider as it is: the beginning of a provider that wraps another and changes some of it. */
export function delegateTo(provider: OldProvider): OldProvider {
  const { listTools: _, callTool: __, toolNamed: ___, cacheHints: ____, ...others } = provider;
  const { resources, prompts, completion, tasks, skills, methods, ...hooks } = others;
  const { listedName, extensionsFor, onChange, mayHear, listMeta, ...forgotten } = hooks;
  // A new member of `OldProvider` does not compile until it is passed on here.
  forgotten satisfies { readonly [member: string]: never };
  return {
    listTools: (context) => provider.listTools(context),
    callTool: (call, context) => provider.callTool(call, context),
    toolNamed: async (name, context) =>
      provider.toolNamed === undefined
        ? (await provider.listTools(context)).find((tool) => tool.name === name)
        : provider.toolNamed(name, context),
    ...(listedName === undefined ? {} : { listedName: listedName.bind(provider) }),
    ...(resources === undefined ? {} : { resources }),
    ...(prompts === undefined ? {} : { prompts }),
    ...(completion === undefined ? {} : { completion }),
    ...(tasks === undefined ? {} : { tasks }),
    ...(skills === undefined ? {} : { skills }),
    ...(methods === undefined ? {} : { methods }),
    ...(extensionsFor === undefined ? {} : { extensionsFor: extensionsFor.bind(provider) }),
    ...(onChange === undefined ? {} : { onChange: onChange.bind(provider) }),
    ...(mayHear === undefined ? {} : { mayHear: mayHear.bind(provider) }),
    ...(listMeta === undefined ? {} : { listMeta: listMeta.bind(provider) }),
    get cacheHints() {
      return provider.cacheHints;
    },
  };
}

/** A list made from another: made once for each list, so that it is the same array while that is. */
export function mappedLists<T extends object>(
  map: (list: readonly T[]) => readonly T[],
): { of(list: readonly T[]): readonly T[]; originOf(list: readonly object[]): readonly object[] } {
  const made = new WeakMap<readonly T[], readonly T[]>();
  const origins = new WeakMap<readonly object[], readonly object[]>();
  return {
    of: (list) => {
      let mapped = made.get(list);
      if (mapped === undefined) {
        mapped = Object.freeze(map(list));
        if (Object.isFrozen(list)) made.set(list, mapped);
        origins.set(mapped, list);
      }
      return mapped;
    },
    originOf: (list) => origins.get(list) ?? list,
  };
}
