import type { Group, GroupContents } from "../mcp/index.ts";
import { type CallContext, type CallerInfo, Listing } from "../provider/index.ts";
import type { Catalog } from "./catalog.ts";
import type { Claim } from "./claims.ts";
import type { Member } from "./member.ts";
import { toGroupName } from "./namespace.ts";
import type { View } from "./view.ts";

interface ComposedGroupsOptions {
  readonly catalog: Catalog;
  readonly viewFor: (caller: CallerInfo) => View;
}

/** The groups of each member that has some. */
type Sources = readonly { readonly member: Member; readonly listing: Listing<Group> }[];

/**
 * Lists the groups of all members. A name begins with that of its member, so no server can take the place of another's group;
 * what is in a group has the names that callers know, and what they may not use is left out of it.
 */
export function composeGroups({ catalog, viewFor }: ComposedGroupsOptions): {
  list(context: CallContext): Promise<Listing<Group>>;
} {
  const made = new WeakMap<View, { readonly sources: Sources; readonly listing: Listing<Group> }>();
  const sourcesFor = async (context: CallContext): Promise<Sources> => {
    const members = catalog.members.filter(({ provider }) => provider.offers(context).serves("groups/list"));
    const listings = await Promise.all(
      // A member that cannot be listed has none.
      members
        .map(async (member) => member.provider.list("groups", context))
        .map((list) => list.catch(() => undefined)),
    );
    return members.flatMap((member, index) => {
      const listing = listings[index];
      return listing === undefined || listing.items.length === 0 ? [] : [{ member, listing }];
    });
  };
  return {
    list: async (context) => {
      const sources = await sourcesFor(context);
      const view = viewFor(context);
      const known = made.get(view);
      if (known !== undefined && isSame(known.sources, sources)) return known.listing;
      const groups = sources.flatMap(({ member, listing }) => {
        const rename = renamesOf(member, view, catalog, context);
        return listing.items.map((group) => rename(group));
      });
      // Of two groups that would have one name, the first is kept: members come in the order of the config.
      const listing = new Listing(
        Object.freeze(
          [...new Map(groups.toReversed().map((group) => [group.name, group])).values()].toReversed(),
        ),
      );
      made.set(view, { sources, listing });
      return listing;
    },
  };
}

function isSame(some: Sources, others: Sources): boolean {
  return (
    some.length === others.length && some.every(({ listing }, index) => listing === others[index]?.listing)
  );
}

/** A group of a member as callers know it. */
function renamesOf(
  member: Member,
  view: View,
  catalog: Catalog,
  context: CallContext,
): (group: Group) => Group {
  const tools = ownNames(view.toolClaims, member.name);
  const prompts = ownNames(view.promptClaims, member.name);
  const uris = catalog.snapshotFor(context).uris.get(member.name);
  const renameAll = (
    names: readonly string[] | undefined,
    to: (name: string) => string | undefined,
  ): readonly string[] => (names ?? []).flatMap((name) => to(name) ?? []);
  return (group) => {
    const { contents, name } = group;
    const renamed: GroupContents | undefined = contents && {
      tools: renameAll(contents.tools, (own) => tools.get(own)),
      prompts: renameAll(contents.prompts, (own) => prompts.get(own)),
      resources: renameAll(contents.resources, (own) => uris?.toPublic(own) ?? own),
      groups: renameAll(contents.groups, (own) => toGroupName(member.name, own)),
    };
    return {
      ...group,
      name: toGroupName(member.name, name),
      ...(renamed === undefined ? {} : { contents: renamed }),
    };
  };
}

/** The public names of a member's things, by its own. */
function ownNames<T>(claims: ReadonlyMap<string, Claim<T>>, member: string): ReadonlyMap<string, string> {
  return new Map(
    [...claims.values()].flatMap(({ server, ownName, key }) =>
      server === member ? [[ownName, key] as const] : [],
    ),
  );
}
