import { originKey, viewUriOf, withViewUri, type Meta, type Resource, type Tool } from "../mcp/index.ts";

/** The server that has something, and its name there. */
export interface Owner {
  readonly server: string;
  readonly ownName: string;
  /** What callers know it by, if that is known: a name or a URI. */
  readonly key?: string;
  /** Set where the owner's results may have other URIs than callers know. */
  readonly uris?: UriNames | undefined;
}

/** The URIs that callers know the resources of one server by. Most are the server's own. */
export interface UriNames {
  /** The URI by which callers know one of the server's own. */
  toPublic(own: string): string;
  /** The server's own URI for one that callers use; undefined where that does not tell the server. */
  toOwn(uri: string): string | undefined;
  /** Whether URIs in results may have to change for callers. */
  readonly differs: boolean;
  /** The server's own URIs of the views that its tools or lists name, by the URIs for callers. */
  readonly views: ReadonlyMap<string, string>;
}

/** One server's thing, and the name that callers know it by. */
export interface Claim<T> extends Owner {
  /** What callers know it by: a name or a URI. */
  readonly key: string;
  readonly item: T;
  /** As its server lists it; the same as `item` when left out. */
  readonly ownItem?: T;
}

/** Something that several servers claim under one name. */
export interface Collision {
  readonly key: string;
  readonly owner: string;
  /** The servers that claim it too, whose things cannot be reached; the owner itself if it claims it twice. */
  readonly others: readonly string[];
  /** The name begins with the owner's prefix, so it is kept for the owner, also if the owner does not offer it. */
  readonly isReserved?: true;
}

/** The server that a claimed name is reserved for, if it is not the one that claims it. */
export type ReservedFor = (claim: Claim<unknown>) => string | undefined;

/** A collision in words, with what to do about it. */
export function describeCollision({ key, owner, others, isReserved }: Collision): string {
  return isReserved === true
    ? `${key} of ${others.join(", ")} begins with the prefix of ${owner} and is left out: rename it, or give its server a prefix`
    : `${key} is offered by several servers (${[owner, ...others].join(", ")}); ${owner} has it: rename or hide the others, or give them a prefix`;
}

export interface Merged<T> {
  readonly claims: readonly Claim<T>[];
  /** The same claims, each followed by those that lost to it. */
  readonly contested: readonly Claim<T>[];
  readonly collisions: readonly Collision[];
}

/**
 * Decides who owns each name. Of several claims, that of the first server in the config wins, unless another
 * server owned the name before: a server that starts late does not change what a name means. `owners` has the
 * owners so far, and is updated. A claim of a name that is reserved for another server is left out, and
 * reported as a collision.
 */
export function merge<T>(
  claims: readonly Claim<T>[],
  owners: Map<string, string>,
  reservedFor: ReservedFor = () => undefined,
): Merged<T> {
  const byKey = new Map<string, Claim<T>[]>();
  const collisions: Collision[] = [];
  for (const claim of claims) {
    const owner = reservedFor(claim);
    if (owner !== undefined) {
      collisions.push({ key: claim.key, owner, others: [claim.server], isReserved: true });
      continue;
    }
    const rivals = byKey.get(claim.key);
    if (rivals === undefined) byKey.set(claim.key, [claim]);
    else if (!rivals.some((rival) => isSame(rival, claim))) rivals.push(claim);
  }
  const settled: Claim<T>[] = [];
  const contested: Claim<T>[] = [];
  for (const [key, rivals] of byKey) {
    const before = owners.get(key);
    const winner = rivals.find(({ server }) => server === before) ?? rivals[0];
    if (winner === undefined) continue;
    settled.push(winner);
    contested.push(winner);
    if (rivals.length === 1) continue;
    const others = rivals.filter((rival) => rival !== winner);
    contested.push(...others);
    collisions.push({ key, owner: winner.server, others: others.map(({ server }) => server) });
  }
  owners.clear();
  for (const { key, server } of settled) owners.set(key, server);
  return { claims: settled, contested, collisions };
}

/** A server that lists a thing twice claims it once. */
function isSame(one: Claim<unknown>, other: Claim<unknown>): boolean {
  return one.server === other.server && one.ownName === other.ownName;
}

/** Reports each collision once. */
export function createReport(
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

interface UriSource {
  readonly server: string;
  readonly tools: readonly Tool[];
  readonly resources: readonly Resource[];
}

interface NamedUris {
  readonly names: ReadonlyMap<string, UriNames>;
  readonly collisions: readonly Collision[];
}

/** Names the URIs of all members, again when a list changed that may name a view. */
export class UriNaming {
  /** The naming for everyone, which decides who owns a view; empty in that naming itself. */
  readonly #general: readonly UriNaming[];
  #owners = new Map<string, string>();
  #last: { readonly parts: readonly unknown[]; readonly named: NamedUris } | undefined;

  constructor(...general: readonly UriNaming[]) {
    this.#general = general;
  }

  /** `areSettled`: owners keep their views, also when a member that comes before them turns up late. */
  name(sources: readonly UriSource[], areSettled: boolean): NamedUris {
    const parts = sources.flatMap(({ server, tools, resources }) => [server, tools, resources]);
    const known = [this, ...this.#general].flatMap((naming) => naming.#last ?? []);
    const same = known.find((last) => areSame(last.parts, parts));
    if (same !== undefined) return same.named;
    const agreed = this.#general.flatMap((naming) => [...naming.#owners]);
    this.#owners = new Map([...(areSettled ? this.#owners : []), ...agreed]);
    const named = nameUris(sources, this.#owners);
    this.#last = { parts, named };
    return named;
  }
}

/** Whether two lists have the same items in the same order. */
export function areSame(one: readonly unknown[], other: readonly unknown[]): boolean {
  return one.length === other.length && one.every((item, index) => item === other[index]);
}

/**
 * Settles the URIs of views and skills. A view belongs to the member that lists it or whose tool names it. Where several do, the first
 * keeps its URI, and `owners` remembers that; the view of another becomes `ui://<server>/<rest>`, so that no member's page is taken for
 * another's. Skills always carry the name of their member (`skill://<server>/<path>`), because people approve them by URI.
 */
function nameUris(sources: readonly UriSource[], owners: Map<string, string>): NamedUris {
  const claims = sources.flatMap(({ server, tools, resources }) => {
    const listed = resources.flatMap(({ uri }) => (isView(uri) ? [uri] : []));
    const named = tools.flatMap((tool) => viewUriOf(tool) ?? []);
    return [...new Set([...listed, ...named])].map((uri) => ({ key: uri, ownName: uri, server, item: uri }));
  });
  const { claims: kept, contested, collisions } = merge(claims, owners);
  const taken = new Set(kept.map(({ key }) => key));
  const winners = new Set<Claim<string>>(kept);
  const views = new Map<string, Map<string, string>>();
  for (const claim of contested) {
    const { server, ownName } = claim;
    const uri = winners.has(claim) ? ownName : findFree(server, ownName, taken);
    taken.add(uri);
    const own = views.get(server) ?? new Map<string, string>();
    views.set(server, own.set(ownName, uri));
  }
  const names = sources.map(({ server, resources }) => {
    const own = views.get(server);
    const hasSkills = resources.some(({ uri }) => isSkill(uri));
    const differs = hasSkills || (own !== undefined && views.size > 1);
    return [server, toNames(server, own ?? new Map<string, string>(), taken, differs)] as const;
  });
  return { names: new Map(names), collisions };
}

function toNames(
  server: string,
  publicOf: ReadonlyMap<string, string>,
  taken: ReadonlySet<string>,
  differs: boolean,
): UriNames {
  const head = `skill://${encodeURIComponent(server)}/`;
  const ownOf = new Map(Array.from(publicOf, ([own, uri]) => [uri, own]));
  const toViewUri = (own: string): string =>
    // A result may name the view of another member: that URI must lead nowhere.
    publicOf.get(own) ?? (taken.has(own) ? findFree(server, own, taken) : own);
  return {
    toPublic: (own) => {
      if (isSkill(own)) return `${head}${own.slice("skill://".length)}`;
      return isView(own) ? toViewUri(own) : own;
    },
    toOwn: (uri) => (uri.startsWith(head) ? `skill://${uri.slice(head.length)}` : ownOf.get(uri)),
    differs,
    views: ownOf,
  };
}

function findFree(server: string, own: string, taken: ReadonlySet<string>): string {
  const rest = own.slice("ui://".length);
  const head = encodeURIComponent(server);
  for (let number = 1; ; number++) {
    const uri = `ui://${head}${number === 1 ? "" : `-${number}`}/${rest}`;
    if (!taken.has(uri)) return uri;
  }
}

/** Whether a URI is that of a view. */
export function isView(uri: string): boolean {
  return uri.startsWith("ui://");
}

/** Whether a URI is that of a file of a skill. */
export function isSkill(uri: string): boolean {
  return uri.startsWith("skill://");
}

/**
 * The `_meta` of a tool for callers: its view under the URI that callers know. Where its server has views, a
 * tool names its server: by that, a host finds the tools that a view may call.
 */
export function toAppMeta(tool: Tool, server: string, names: UriNames | undefined): Meta | undefined {
  const { _meta, name } = tool;
  if (names === undefined || names.views.size === 0) return _meta;
  const uri = viewUriOf(tool);
  const renamed = uri === undefined ? _meta : withViewUri(_meta ?? {}, names.toPublic(uri));
  return { ...renamed, [originKey]: { server, name } };
}
