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

interface Current {
  readonly snapshot: Snapshot;
  readonly views: Map<Policy, View>;
}

/** Kinds of callers that are kept; beyond that the oldest edition is made anew when it is needed. */
const maxEditions = 1024;

/** All editions are made from this. */
interface Basis {
  members: readonly Member[];
  /** Whether owners keep their names. */
  areSettled: boolean;
  readonly reservedFor: (() => ReservedFor) | undefined;
  readonly report: (collisions: readonly Collision[]) => void;
}

/** One member and its lists for one caller. */
interface Source {
  readonly member: Member;
  readonly lists: MemberLists;
}

/** The catalog for callers of one kind. */
class Edition {
  readonly #basis: Basis;
  /** The edition without a caller, which this one follows in who owns a name; none for that one itself. */
  readonly #general: readonly Edition[];
  /** By list: who owns a name. */
  readonly #owners = new Map<ListPart, Map<string, string>>();
  /** By list: the last merge, and its sources. */
  readonly #known = new Map<
    ListPart,
    { readonly parts: readonly unknown[]; readonly merged: Merged<unknown> }
  >();
  #current: Current | undefined;

  constructor(basis: Basis, ...general: readonly Edition[]) {
    this.#basis = basis;
    this.#general = general;
  }

  /** The catalog for a caller of this kind now, made from the lists of all members if something changed. */
  read(caller: Hearer): Current {
    if (this.#current !== undefined) return this.#current;
    // Who owns a name follows from the lists for everyone, so that it is the same for all callers.
    for (const general of this.#general) general.read(anyone);
    const { members, report } = this.#basis;
    const snapshot = this.#make(members.map((member) => ({ member, lists: member.listsFor(caller) })));
    report(snapshot.collisions);
    return (this.#current = { snapshot, views: new Map() });
  }

  /** Something changed. */
  outdated(): void {
    this.#current = undefined;
  }

  #make(sources: readonly Source[]): Snapshot {
    const merged = <Part extends ListPart>(
      part: Part,
      claimsOf: (member: Member, list: MemberLists[Part]) => readonly Claim<MemberLists[Part][number]>[],
    ): Merged<MemberLists[Part][number]> => this.#merge(part, sources, claimsOf);
    const tools = merged("tools", toolClaims);
    const prompts = merged("prompts", ({ name: server, names }, list) =>
      list.map((item) => {
        const key = names.prompt(item.name);
        return { key, item: rename(item, key), server, ownName: item.name };
      }),
    );
    const resources = merged("resources", ({ name: server }, list) =>
      list.map((item) => ({ key: item.uri, item, server, ownName: item.uri })),
    );
    const templates = merged("templates", ({ name: server }, list) =>
      list.map((item) => ({ key: item.uriTemplate, item, server, ownName: item.uriTemplate })),
    );
    return {
      tools: tools.claims,
      prompts: prompts.claims,
      resources: resources.contested,
      templates: templates.contested,
      withholds: new Map(sources.map(({ member, lists }) => [member.name, lists.withholds])),
      // Two members may well offer the same resource; a name is another matter.
      collisions: [...tools.collisions, ...prompts.collisions],
    };
  }

  #merge<Part extends ListPart>(
    part: Part,
    sources: readonly Source[],
    claimsOf: (member: Member, list: MemberLists[Part]) => readonly Claim<MemberLists[Part][number]>[],
  ): Merged<MemberLists[Part][number]> {
    const reservedFor = part === "tools" || part === "prompts" ? this.#basis.reservedFor?.() : undefined;
    const listed = sources.flatMap(({ member, lists }) => [member.name, member.names, lists[part]]);
    const parts = [reservedFor, ...listed];
    const known = [this, ...this.#general].flatMap((edition) => edition.#known.get(part) ?? []);
    const same = known.find((each) => isSame(each.parts, parts));
    if (same !== undefined) return same.merged as Merged<MemberLists[Part][number]>;
    const before = this.#basis.areSettled ? this.#owners.get(part) : undefined;
    const agreed = this.#general.flatMap((edition) => [...(edition.#owners.get(part) ?? [])]);
    const owners = new Map([...(before ?? []), ...agreed]);
    const claims = sources.flatMap(({ member, lists }) => claimsOf(member, lists[part]));
    const merged = merge(claims, owners, reservedFor);
    this.#owners.set(part, owners);
    this.#known.set(part, { parts, merged });
    return merged;
  }
}

/**
 * The things of all members, under names that do not collide. Made anew when something changed and a caller looks; a list
 * that did not change is the same array.
 */
export class Catalog {
  readonly #options: CatalogOptions;
  readonly #editions = new Map<unknown, Edition>();
  readonly #basis: Basis;
  readonly #general: Edition;
  #byName: ReadonlyMap<string, Member> = new Map();

  constructor(options: CatalogOptions) {
    this.#options = options;
    const { reservedFor, onCollision } = options;
    this.#basis = { members: [], areSettled: false, reservedFor, report: createReport(onCollision) };
    this.#general = new Edition(this.#basis);
  }

  get members(): readonly Member[] {
    return this.#basis.members;
  }

  set members(members: readonly Member[]) {
    this.#basis.members = members;
    this.#byName = new Map(members.map((member) => [member.name, member]));
    this.outdated();
  }

  memberNamed(name: string): Member | undefined {
    return this.#byName.get(name);
  }

  /** A member's lists or names changed. */
  outdated(): void {
    this.#general.outdated();
    for (const edition of this.#editions.values()) edition.outdated();
  }

  /** From now on an owner keeps its names, also when a member that comes before it turns up late. */
  settle(): void {
    this.#basis.areSettled = true;
    this.outdated();
  }

  /** The part of the catalog that a policy leaves to a caller. The policies of callers are few and stay the same objects. */
  viewFor(caller: Hearer, policy: Policy): View {
    const { snapshot, views } = this.#currentFor(caller);
    let view = views.get(policy);
    if (view === undefined)
      views.set(policy, (view = createView(snapshot, policy, this.#options.separator())));
    return view;
  }

  /** Everything there is for a caller, whatever it may use of it. */
  snapshotFor(caller: Hearer): Snapshot {
    return this.#currentFor(caller).snapshot;
  }

  #currentFor(caller: Hearer): Current {
    const kind = this.#options.kindOf(caller);
    let edition = this.#editions.get(kind);
    if (edition === undefined) {
      const [oldest] = this.#editions.keys();
      if (this.#editions.size >= maxEditions) this.#editions.delete(oldest);
      this.#editions.set(kind, (edition = new Edition(this.#basis, this.#general)));
    }
    return edition.read(caller);
  }
}

/** Tells of each collision once. */
function createReport(
  onCollision: ((collision: Collision) => void) | undefined,
): (collisions: readonly Collision[]) => void {
  const reported = new Set<string>();
  return (collisions) => {
    for (const collision of collisions) {
      const text = JSON.stringify(collision);
      if (reported.has(text)) continue;
      if (reported.size > 1000) reported.clear();
      reported.add(text);
      onCollision?.(collision);
    }
  };
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

function toolClaims({ name: server, names }: Member, tools: readonly Tool[]): readonly Claim<Tool>[] {
  return tools.flatMap((tool) => {
    const named = names.tool(tool.name);
    if (named === undefined) return [];
    return [new ToolClaim(server, tool, named)];
  });
}

/** A tool that gets its public name when it is first listed: that is dear, and a call does not need it. */
class ToolClaim implements Claim<Tool> {
  readonly key: string;
  readonly server: string;
  readonly ownName: string;
  readonly #description: string | undefined;
  #tool: Tool;

  constructor(
    server: string,
    tool: Tool,
    { name, description }: { readonly name: string; readonly description?: string | undefined },
  ) {
    this.key = name;
    this.server = server;
    this.ownName = tool.name;
    this.#description = description;
    this.#tool = tool;
  }

  get item(): Tool {
    return (this.#tool = rename(this.#tool, this.key, this.#description));
  }
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
