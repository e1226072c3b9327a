import { newestModernRevision } from "../../mcp/revision.ts";
import type { Tool } from "../../mcp/types.ts";
import { withMembers } from "../definition.ts";
import type { ListPart } from "../fit/list-fault.ts";
import type { Hearer } from "../provider.ts";
import { type Claim, type Collision, merge, type Merged, type ReservedFor } from "./claims.ts";
import type { MemberLists, Member } from "./member.ts";
import { createView, type Policy, type Snapshot, type View } from "./view.ts";

interface CatalogOptions {
  /** Callers of one kind see the same lists. */
  readonly kindOf: (caller: Hearer) => unknown;
  /** Between a member's name and a URI, where a policy judges a resource. */
  readonly separator: () => string;
  /** Which names of tools and prompts are kept for one member; another function whenever that changed. None when left out. */
  readonly reservedFor?: () => ReservedFor;
  readonly onCollision?: (collision: Collision) => void;
}

/** The catalog for callers of one kind. */
interface Edition {
  readonly owners: Map<ListPart, Map<string, string>>;
  /** The last merge of each list, and its sources. */
  readonly known: Map<ListPart, { readonly parts: readonly unknown[]; readonly merged: Merged<unknown> }>;
  /** Undefined when something changed since. */
  current: Current | undefined;
}

interface Current {
  readonly snapshot: Snapshot;
  readonly views: Map<Policy, View>;
}

/** Kinds of callers that are kept; beyond that the oldest edition is made anew when it is needed. */
const maxEditions = 1024;

/**
 * The things of all members, under names that do not collide. Made anew when something changed and a caller looks; a list
 * that did not change is the same array.
 */
export class Catalog {
  readonly #options: CatalogOptions;
  readonly #editions = new Map<unknown, Edition>();
  /** The edition without a caller, which all others follow in who owns a name. */
  readonly #general = createEdition();
  readonly #reported = new Set<string>();
  #members: readonly Member[] = [];
  #byName: ReadonlyMap<string, Member> = new Map();
  #isSettled = false;

  constructor(options: CatalogOptions) {
    this.#options = options;
  }

  get members(): readonly Member[] {
    return this.#members;
  }

  set members(members: readonly Member[]) {
    this.#members = members;
    this.#byName = new Map(members.map((member) => [member.name, member]));
    this.outdated();
  }

  memberNamed(name: string): Member | undefined {
    return this.#byName.get(name);
  }

  /** A member's lists or names changed. */
  outdated(): void {
    this.#general.current = undefined;
    for (const edition of this.#editions.values()) edition.current = undefined;
  }

  /** From now on an owner keeps its names, also when a member that comes before it turns up late. */
  settle(): void {
    this.#isSettled = true;
    this.outdated();
  }

  /** Everything there is for a caller, whatever it may use of it. */
  snapshotFor(caller: Hearer): Snapshot {
    return this.#currentFor(caller).snapshot;
  }

  /** The part of the catalog that a policy leaves to a caller. The policies of callers are few and stay the same objects. */
  viewFor(caller: Hearer, policy: Policy): View {
    const { snapshot, views } = this.#currentFor(caller);
    let view = views.get(policy);
    if (view === undefined)
      views.set(policy, (view = createView(snapshot, policy, this.#options.separator())));
    return view;
  }

  #currentFor(caller: Hearer): Current {
    const kind = this.#options.kindOf(caller);
    const edition = this.#editions.get(kind) ?? this.#addEdition(kind);
    return (edition.current ??= { snapshot: this.#make(caller, edition), views: new Map() });
  }

  #addEdition(kind: unknown): Edition {
    const [oldest] = this.#editions.keys();
    if (this.#editions.size >= maxEditions) this.#editions.delete(oldest);
    const edition = createEdition();
    this.#editions.set(kind, edition);
    return edition;
  }

  #make(caller: Hearer, edition: Edition): Snapshot {
    // Who owns a name follows from the lists for everyone, so that it is the same for all callers.
    if (edition !== this.#general)
      this.#general.current ??= { snapshot: this.#make(anyone, this.#general), views: new Map() };
    const sources = this.#members.map((member) => ({ member, lists: member.listsFor(caller) }));
    const claimed = <Part extends ListPart>(
      part: Part,
      claimsOf: (member: Member, list: MemberLists[Part]) => readonly Claim<MemberLists[Part][number]>[],
    ): Merged<MemberLists[Part][number]> => {
      const reservedFor = part === "tools" || part === "prompts" ? this.#options.reservedFor?.() : undefined;
      const listed = sources.flatMap(({ member, lists }) => [member.name, member.names, lists[part]]);
      const parts = [reservedFor, ...listed];
      const known = [edition, this.#general].flatMap((each) => each.known.get(part) ?? []);
      const same = known.find((each) => isSame(each.parts, parts));
      if (same !== undefined) return same.merged as Merged<MemberLists[Part][number]>;
      const before = this.#isSettled ? edition.owners.get(part) : undefined;
      const agreed = edition === this.#general ? undefined : this.#general.owners.get(part);
      const owners = new Map([...(before ?? []), ...(agreed ?? [])]);
      const merged = merge(
        sources.flatMap(({ member, lists }) => claimsOf(member, lists[part])),
        owners,
        reservedFor,
      );
      edition.owners.set(part, owners);
      edition.known.set(part, { parts, merged });
      return merged;
    };
    const tools = claimed("tools", toolClaims);
    const prompts = claimed("prompts", ({ name: server, names }, list) =>
      list.map((item) => {
        const key = names.prompt(item.name);
        return { key, item: rename(item, key), server, ownName: item.name };
      }),
    );
    const resources = claimed("resources", ({ name: server }, list) =>
      list.map((item) => ({ key: item.uri, item, server, ownName: item.uri })),
    );
    const templates = claimed("templates", ({ name: server }, list) =>
      list.map((item) => ({ key: item.uriTemplate, item, server, ownName: item.uriTemplate })),
    );
    // Two members may well offer the same resource; a name is another matter.
    const collisions = [...tools.collisions, ...prompts.collisions];
    this.#report(collisions);
    return {
      tools: tools.claims,
      prompts: prompts.claims,
      resources: resources.contested,
      templates: templates.contested,
      withholds: new Map(sources.map(({ member, lists }) => [member.name, lists.withholds])),
      collisions,
    };
  }

  #report(collisions: readonly Collision[]): void {
    for (const collision of collisions) {
      const text = JSON.stringify(collision);
      if (this.#reported.has(text)) continue;
      if (this.#reported.size > 1000) this.#reported.clear();
      this.#reported.add(text);
      this.#options.onCollision?.(collision);
    }
  }
}

/** A caller of which nothing is known. */
export const anyone: Hearer = {
  caller: undefined,
  capabilities: {},
  revision: newestModernRevision,
  session: undefined,
};

function isSame(one: readonly unknown[], other: readonly unknown[]): boolean {
  return one.length === other.length && one.every((each, index) => each === other[index]);
}

function createEdition(): Edition {
  return { owners: new Map(), known: new Map(), current: undefined };
}

function toolClaims({ name: server, names }: Member, tools: readonly Tool[]): readonly Claim<Tool>[] {
  return tools.flatMap((tool) => {
    const named = names.tool(tool.name);
    if (named === undefined) return [];
    const item = rename(tool, named.name, named.description);
    return [{ key: named.name, item, server, ownName: tool.name }];
  });
}

function rename<T extends { readonly name: string; readonly description?: string }>(
  item: T,
  name: string,
  description?: string,
): T {
  const isSame = item.name === name && (description === undefined || item.description === description);
  if (isSame) return item;
  return withMembers(item, { name, ...(description === undefined ? {} : { description }) } as Partial<T>);
}
