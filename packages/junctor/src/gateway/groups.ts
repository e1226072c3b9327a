import { toGroupName, type View } from "@junctor/core/compose";
import { type Group, type GroupContents, isGroupName, keyOf } from "@junctor/core/mcp";
import { type CallContext, type Listing, type Provider, withGroups } from "@junctor/core/provider";

/** A server or a profile that is served as a group, and what is in it for a caller. */
export interface ServedGroup {
  readonly name: string;
  readonly description: string;
  readonly has: (part: keyof Lists, key: string, context: CallContext) => boolean;
}

interface Lists {
  readonly tools: Listing<object & Parameters<typeof keyOf>[0]>;
  readonly prompts: Lists["tools"];
  readonly resources: Lists["tools"];
}

interface GroupsOptions {
  /** In the order of the config. They take precedence over groups of servers with the same names. */
  readonly served: readonly ServedGroup[];
  /** What one caller may use: contents are the same while it and the lists are. */
  readonly viewFor: (context: CallContext) => View;
  /** The middleware of the gateway, for fetching a group. */
  readonly own: (provider: Provider) => Provider;
}

/** Lists the groups of servers, and servers and profiles as groups, for callers that declare the draft. */
export function withServedGroups(inner: Provider, { served, viewFor, own }: GroupsOptions): Provider {
  const made = new WeakMap<
    View,
    { readonly lists: Lists; readonly of: object; readonly all: Listing<Group> }
  >();

  const listGroups = async (context: CallContext): Promise<Listing<Group>> => {
    const [tools, prompts, resources, listed] = await Promise.all([
      inner.list("tools", context),
      inner.list("prompts", context),
      inner.list("resources", context),
      inner.list("groups", context),
    ]);
    const lists: Lists = { tools, prompts, resources };
    const view = viewFor(context);
    const known = made.get(view);
    if (known?.of === listed && parts.every((part) => known.lists[part] === lists[part])) return known.all;
    const first = served.map(({ name, description, has }): Group => {
      const contents: GroupContents = Object.fromEntries(
        parts.map((part) => [part, lists[part].items.map(keyOf).filter((key) => has(part, key, context))]),
      );
      return { name: toName(name), description, contents };
    });
    const taken = new Set(first.map(({ name }) => name));
    const all = listed.with(
      Object.freeze([...first, ...listed.items.filter(({ name }) => !taken.has(name))]),
    );
    made.set(view, { lists, of: listed, all });
    return all;
  };

  const list = (part: string, context: CallContext): ReturnType<Provider["list"]> =>
    part === "groups" ? listGroups(context) : inner.list(part as "tools", context);
  const grouped = withGroups({ ...inner, list: list as Provider["list"] });
  const guarded = own(grouped);
  return {
    ...grouped,
    call: (operation, context) => (operation.part === "groups" ? guarded : inner).call(operation, context),
  };
}

const parts = ["tools", "prompts", "resources"] as const;

/** The name of a server or profile in the characters that names of groups may have. */
function toName(name: string): string {
  return isGroupName(name) ? name : toGroupName(name);
}
