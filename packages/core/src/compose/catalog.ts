import { canShowViews, newestModernRevision, type Tool, setOwner, withMembers } from "../mcp/index.ts";
import type { CallerInfo } from "../provider/index.ts";
import {
  type Claim,
  type Collision,
  createReport,
  merge,
  type Merged,
  type ReservedFor,
  type UriNames,
  areSame,
  toAppMeta,
  UriNaming,
} from "./claims.ts";
import type { ListPart, MemberLists, Member } from "./member.ts";
import { createView, type Policy, type Snapshot, type View } from "./view.ts";

interface CatalogOptions {
  /** Callers of one kind see the same lists. */
  readonly kindOf: (caller: CallerInfo) => unknown;
  /** Between a member's name and a URI, where a policy judges a resource. */
  readonly separator: () => string;
  /**
   * Which names of tools and prompts are reserved for one member. Returns another function
   * whenever that has changed.
   */
  readonly reservedFor?: () => ReservedFor;
  readonly onCollision?: (collision: Collision) => void;
}

interface Current {
  readonly snapshot: Snapshot;
  readonly views: Map<Policy, View>;
  /** The same for hosts. They also see tools that are for app views alone. */
  readonly viewsOfHosts: Map<Policy, View>;
}

/** The most views kept for one edition. */
const maxViews = 1024;

/** The most editions kept; beyond that the oldest is dropped, and made again when it is needed. */
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
  /** The edition without a caller, which decides who owns a name; empty in that edition itself. */
  readonly #general: readonly Edition[];
  /** By list: who owns a name. */
  readonly #owners = new Map<ListPart, Map<string, string>>();
  /** By list: the last merge, and its sources. */
  readonly #known = new Map<
    ListPart,
    { readonly parts: readonly unknown[]; readonly merged: Merged<unknown> }
  >();
  readonly #uris: UriNaming;
  #current: Current | undefined;

  constructor(basis: Basis, ...general: readonly Edition[]) {
    this.#basis = basis;
    this.#general = general;
    this.#uris = new UriNaming(...general.map((edition) => edition.#uris));
  }

  /** The catalog for a caller of this kind now, made from the lists of all members if something changed. */
  read(caller: CallerInfo): Current {
    if (this.#current !== undefined) return this.#current;
    // Who owns a name follows from the lists for everyone, so that it is the same for all callers.
    for (const general of this.#general) general.read(anyone);
    const { members, report } = this.#basis;
    const snapshot = this.#make(members.map((member) => ({ member, lists: member.listsFor(caller) })));
    report(snapshot.collisions);
    return (this.#current = { snapshot, views: new Map(), viewsOfHosts: new Map() });
  }

  /** Something changed. */
  outdated(): void {
    this.#current = undefined;
  }

  #make(sources: readonly Source[]): Snapshot {
    const listed = sources.map(({ member: { name: server }, lists: { tools, resources } }) => ({
      server,
      tools,
      resources,
    }));
    const { names: uris, collisions } = this.#uris.name(listed, this.#basis.areSettled);
    const merged = <Part extends ListPart>(
      part: Part,
      claimsOf: (member: Member, list: MemberLists[Part]) => readonly Claim<MemberLists[Part][number]>[],
    ): Merged<MemberLists[Part][number]> => this.#merge(part, sources, uris, claimsOf);
    const tools = merged("tools", (member, list) => toolClaims(member, list, uris.get(member.name)));
    const prompts = merged("prompts", ({ name: server, names }, list) =>
      list.map((item) => {
        const key = names.prompt(item.name);
        const renamed = item.name === key ? item : withMembers(item, { name: key });
        return { key, item: renamed, server, ownName: item.name, uris: toDiffering(uris.get(server)) };
      }),
    );
    const resources = merged("resources", ({ name: server }, list) =>
      list.map((item) => {
        const key = uris.get(server)?.toPublic(item.uri) ?? item.uri;
        const renamed = item.uri === key ? item : withMembers(item, { uri: key });
        return { key, item: renamed, server, ownName: item.uri, uris: toDiffering(uris.get(server)) };
      }),
    );
    const templates = merged("templates", ({ name: server }, list) =>
      list.map((item) => ({ key: item.uriTemplate, item, server, ownName: item.uriTemplate })),
    );
    return {
      tools: tools.claims,
      prompts: prompts.claims,
      resources: resources.contested,
      templates: templates.contested,
      uris,
      withholds: new Map(sources.map(({ member, lists }) => [member.name, lists.withholds])),
      // Several members may offer the same resource, but not the same name or view.
      collisions: [...tools.collisions, ...prompts.collisions, ...collisions],
    };
  }

  #merge<Part extends ListPart>(
    part: Part,
    sources: readonly Source[],
    uris: Snapshot["uris"],
    claimsOf: (member: Member, list: MemberLists[Part]) => readonly Claim<MemberLists[Part][number]>[],
  ): Merged<MemberLists[Part][number]> {
    const reservedFor = part === "tools" || part === "prompts" ? this.#basis.reservedFor?.() : undefined;
    const listed = sources.flatMap(({ member, lists }) => [member.name, member.names, lists[part]]);
    const parts = [reservedFor, uris, ...listed];
    const known = [this, ...this.#general].flatMap((edition) => edition.#known.get(part) ?? []);
    const same = known.find((last) => areSame(last.parts, parts));
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
 * What all members have, under names that do not collide. Made again when a caller looks after a change; a
 * list that did not change stays the same array.
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

  /** Between a member's name and a URI, where a policy judges a resource. */
  get separator(): string {
    return this.#options.separator();
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
  viewFor(caller: CallerInfo, policy: Policy): View {
    const { snapshot, views, viewsOfHosts } = this.#currentFor(caller);
    const { capabilities } = caller;
    const showsViews = capabilities.extensions !== undefined && canShowViews(capabilities);
    const known = showsViews ? viewsOfHosts : views;
    let view = known.get(policy);
    if (view === undefined) {
      if (known.size >= maxViews) known.clear();
      const separator = this.#options.separator();
      known.set(policy, (view = createView(snapshot, policy, { separator, showsViews })));
    }
    return view;
  }

  /** The whole catalog for a caller, whatever it may use of it. */
  snapshotFor(caller: CallerInfo): Snapshot {
    return this.#currentFor(caller).snapshot;
  }

  #currentFor(caller: CallerInfo): Current {
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

/** A caller about which nothing is known. */
export const anyone: CallerInfo = {
  caller: undefined,
  capabilities: {},
  revision: newestModernRevision,
  session: undefined,
};

function toDiffering(uris: UriNames | undefined): UriNames | undefined {
  return uris?.differs === true ? uris : undefined;
}

function toolClaims(
  { name: server, names }: Member,
  tools: readonly Tool[],
  uris: UriNames | undefined,
): readonly Claim<Tool>[] {
  return tools.flatMap((tool) => {
    const named = names.tool(tool.name);
    return named === undefined ? [] : [new ToolClaim(server, tool, named, uris)];
  });
}

/** A tool that gets its public name when it is first listed: that is expensive, and a call does not need it. */
class ToolClaim implements Claim<Tool> {
  readonly key: string;
  readonly server: string;
  readonly ownName: string;
  readonly ownItem: Tool;
  readonly uris: UriNames | undefined;
  readonly #names: UriNames | undefined;
  readonly #description: string | undefined;
  #tool: Tool | undefined;

  constructor(
    server: string,
    tool: Tool,
    { name, description }: { readonly name: string; readonly description?: string | undefined },
    uris: UriNames | undefined,
  ) {
    this.key = name;
    this.server = server;
    this.ownName = tool.name;
    this.ownItem = tool;
    this.uris = toDiffering(uris);
    this.#names = uris;
    this.#description = description;
  }

  get item(): Tool {
    return (this.#tool ??= this.#rename(this.ownItem));
  }

  #rename(tool: Tool): Tool {
    const name = this.key;
    const description = this.#description ?? tool.description;
    const _meta = toAppMeta(tool, this.server, this.#names);
    const isSame = tool.name === name && tool.description === description && tool._meta === _meta;
    // A definition that does not change is the server's own object, which others may list too.
    if (isSame) return tool;
    const renamed = withMembers(tool, { name, description, _meta });
    setOwner(renamed, { server: this.server, ownName: this.ownName });
    return renamed;
  }
}
