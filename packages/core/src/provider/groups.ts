import { NotFoundError } from "../errors/index.ts";
import { joinJson, RawJson } from "../json/index.ts";
import {
  declaredExtension,
  definitionOf,
  extensionIds,
  type Group,
  type GroupContents,
  type GroupedPart,
  isGroupName,
  isModernRevision,
  type Items,
  keyOf,
} from "../mcp/index.ts";
import { defined } from "../options/index.ts";
import type { CallContext } from "./context.ts";
import { type Listing, mapListings } from "./listing.ts";
import { findIn } from "./operation.ts";
import type { CallerInfo, Offers, Provider } from "./provider.ts";

const grouped: readonly GroupedPart[] = ["tools", "prompts", "resources", "groups"];

type Lists = { readonly [P in GroupedPart]: Listing<Items[P]> };

/** Where everything is, for callers that know groups. Groups with nothing in them for the caller are left out. */
interface Placement {
  readonly lists: Lists;
  /** By name: the groups that can be reached from the top, and what is in them. */
  readonly groups: ReadonlyMap<string, { readonly group: Group; readonly contents: GroupContents }>;
  /** The lists without what is in a group. */
  readonly top: Lists;
}

/**
 * Puts things of a provider into groups. Callers that declare the extension find them by `groups/list` and
 * `groups/get`, and no longer in the lists; for all others nothing changes. It hides nothing: middleware,
 * which belongs inside, decides who may call a tool. Groups that the provider itself lists are kept. Throws a
 * `TypeError` for groups that contradict each other.
 *
 * @example
 * withGroups(registry, [{ name: "billing", description: "Invoices and refunds.", contents: { tools: ["refund"] } }]);
 */
export function withGroups(inner: Provider, groups: readonly Group[] = []): Provider {
  assertGroups(groups);
  const withOwn = mapListings<Group>((listing) => listing.with(Object.freeze([...groups, ...listing.items])));
  const placements = new WeakMap<Listing<object>, Placement>();

  const placementFor = async (context: CallContext): Promise<Placement> => {
    const [tools, prompts, resources, listed] = await Promise.all([
      inner.list("tools", context),
      inner.list("prompts", context),
      inner.list("resources", context),
      inner.list("groups", context),
    ]);
    const lists: Lists = { tools, prompts, resources, groups: withOwn(listed) };
    const known = placements.get(tools);
    if (known !== undefined && grouped.every((part) => known.lists[part] === lists[part])) return known;
    const placement = place(lists);
    placements.set(tools, placement);
    return placement;
  };

  const listTop = async (part: GroupedPart, context: CallContext): Promise<Listing<never>> =>
    (await placementFor(context)).top[part] as Listing<never>;

  const getGroup = async (name: string, context: CallContext): Promise<RawJson> => {
    const placement = await placementFor(context);
    const found = placement.groups.get(name);
    if (found === undefined) throw new NotFoundError("group", name);
    return toResult(found.group, found.contents, placement);
  };

  const offers = new WeakMap<Offers, Offers>();
  const settings = inner.onChange === undefined ? {} : { listChanged: true };
  const withExtension = (own: Offers): Offers => {
    let merged = offers.get(own);
    if (merged === undefined)
      offers.set(
        own,
        (merged = {
          serves: (method) => isGroupMethod(method) || own.serves(method),
          extensions: { ...own.extensions, [extensionIds.groups]: settings },
        }),
      );
    return merged;
  };

  return {
    ...inner,
    list: (part, context) =>
      knowsGroups(context) && isGrouped(part) ? listTop(part, context) : inner.list(part, context),
    call: (operation, context) =>
      operation.method === "groups/get"
        ? getGroup(operation.name, context).then((result) => ({ kind: "complete", result }))
        : inner.call(operation, context),
    // What is in a group can be called, so it is found like everything else.
    find: (part, name, context) => findIn(inner, part, name, context),
    offers: (caller) => {
      const own = inner.offers(caller);
      // The methods are there for callers that declare the extension, and it is
      // announced to every modern caller.
      if (!isModernRevision(caller.revision)) return own;
      const all = withExtension(own);
      return knowsGroups(caller)
        ? all
        : { serves: (method) => own.serves(method), extensions: all.extensions ?? {} };
    },
    ...(inner.onChange === undefined
      ? {}
      : {
          onChange: (listener) =>
            inner.onChange?.((change) => {
              listener(change);
              // A group comes and goes with its contents.
              if (isGrouped(change.part) && change.part !== "groups") listener({ ...change, part: "groups" });
            }) ?? (() => {}),
        }),
  };
}

/** Whether a caller declared the extension. */
function knowsGroups({ capabilities, revision }: Pick<CallerInfo, "capabilities" | "revision">): boolean {
  return (
    capabilities.extensions !== undefined &&
    isModernRevision(revision) &&
    declaredExtension(capabilities, extensionIds.groups) !== undefined
  );
}

function isGrouped(part: string): part is GroupedPart {
  return (grouped as readonly string[]).includes(part);
}

function isGroupMethod(method: string): boolean {
  return method === "groups/list" || method === "groups/get";
}

function place(lists: Lists): Placement {
  const listed = new Map(lists.groups.items.map((group) => [group.name, group]));
  const nested = new Set([...listed.values()].flatMap(({ contents }) => contents?.groups ?? []));
  const groups = new Map<string, { readonly group: Group; readonly contents: GroupContents }>();
  const inGroups: { readonly [P in GroupedPart]: Set<string> } = {
    tools: new Set(),
    prompts: new Set(),
    resources: new Set(),
    groups: nested,
  };
  /**
   * Visits a group and those in it, and returns whether the caller has anything of
   * it. Servers may list cycles.
   */
  const visit = (name: string, above: ReadonlySet<string>): boolean => {
    if (groups.has(name)) return true;
    const group = listed.get(name);
    if (group === undefined || above.has(name)) return false;
    const listedContents = group.contents ?? {};
    const path = new Set(above).add(name);
    const contents: GroupContents = {
      ...Object.fromEntries(
        (["tools", "prompts", "resources"] as const).map((part) => [
          part,
          (listedContents[part] ?? []).filter((key) => lists[part].get(key) !== undefined),
        ]),
      ),
      groups: (listedContents.groups ?? []).filter((child) => visit(child, path)),
    };
    const isEmpty = grouped.every((part) => contents[part]?.length === 0);
    const isText = group.instructions !== undefined && group.contents === undefined;
    if (isEmpty && !isText) return false;
    groups.set(name, { group, contents });
    for (const part of ["tools", "prompts", "resources"] as const)
      for (const key of contents[part] ?? []) inGroups[part].add(key);
    return true;
  };
  const roots = [...listed.keys()].filter((name) => !nested.has(name));
  const shown = roots.filter((name) => visit(name, new Set()));
  const leave = <P extends "tools" | "prompts" | "resources">(part: P): Lists[P] => {
    const { items } = lists[part];
    if (inGroups[part].size === 0) return lists[part];
    const left = items.filter((item) => !inGroups[part].has(keyOf(item)));
    return (lists[part] as Listing<Items[P]>).with(Object.freeze(left)) as Lists[P];
  };
  const top: Lists = {
    tools: leave("tools"),
    prompts: leave("prompts"),
    resources: leave("resources"),
    groups: lists.groups.with(Object.freeze(shown.map((name) => toListed(listed.get(name) as Group)))),
  };
  return { lists, groups, top };
}

/** A group as lists show it. */
function toListed(group: Group): Group {
  return defined({ ...group, instructions: undefined, contents: undefined });
}

/** The result of `groups/get`, with whole definitions. */
function toResult({ instructions }: Group, contents: GroupContents, { lists, groups }: Placement): RawJson {
  const definitionsIn = (part: GroupedPart): readonly RawJson[] =>
    (contents[part] ?? []).map((key) => {
      const item = part === "groups" ? groups.get(key)?.group : lists[part].get(key);
      return part === "groups"
        ? RawJson.fromValue(toListed(item as Group))
        : definitionOf(item as Items[GroupedPart]);
    });
  const members = grouped.flatMap((part) => {
    const definitions = definitionsIn(part);
    return definitions.length === 0 ? [] : [[`"${part}":[`, ...separate(definitions), "]"]];
  });
  const text = instructions === undefined ? [] : [[`"instructions":${JSON.stringify(instructions)}`]];
  const all = members.length === 0 ? text : [...text, ['"contents":{', ...members.flatMap(withComma), "}"]];
  return joinJson(["{", ...all.flatMap(withComma), "}"]);
}

function separate(items: readonly RawJson[]): readonly (string | RawJson)[] {
  return items.flatMap((item, index) => (index === 0 ? [item] : [",", item]));
}

function withComma(pieces: readonly (string | RawJson)[], index: number): readonly (string | RawJson)[] {
  return index === 0 ? pieces : [",", ...pieces];
}

/** Throws for groups that no caller could use as they are meant. */
function assertGroups(groups: readonly Group[]): void {
  const byName = new Map<string, Group>();
  for (const group of groups) {
    const what = `withGroups: the group ${JSON.stringify(group.name)}`;
    if (typeof group.name !== "string" || !isGroupName(group.name))
      throw new TypeError(
        `${what} needs a name of 1 to 64 lower-case letters, digits and single hyphens, such as "billing"`,
      );
    if (byName.has(group.name)) throw new TypeError(`${what} is there twice`);
    if (typeof group.description !== "string")
      throw new TypeError(`${what} needs a description that tells a model when to use it`);
    if (group.instructions === undefined && group.contents === undefined)
      throw new TypeError(`${what} needs instructions or contents`);
    for (const part of Object.keys(group.contents ?? {}))
      if (!isGrouped(part))
        throw new TypeError(`${what}: contents has no ${part}; it may have ${grouped.join(", ")}`);
    byName.set(group.name, group);
  }
  const done = new Set<string>();
  const visit = (name: string, above: readonly string[]): void => {
    if (above.includes(name))
      throw new TypeError(`withGroups: groups contain each other: ${[...above, name].join(" → ")}`);
    if (done.has(name)) return;
    for (const child of byName.get(name)?.contents?.groups ?? []) {
      if (!byName.has(child))
        throw new TypeError(
          `withGroups: the group ${JSON.stringify(name)} contains ${JSON.stringify(child)}, which is not a group`,
        );
      visit(child, [...above, name]);
    }
    done.add(name);
  };
  for (const name of byName.keys()) visit(name, []);
}
