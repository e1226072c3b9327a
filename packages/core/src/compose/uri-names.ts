import { originKey, viewUriOf, withViewUri, type Meta, type Resource, type Tool } from "../mcp/index.ts";
import { type Claim, type Collision, merge, type UriNames } from "./claims.ts";

interface UriSource {
  readonly server: string;
  readonly tools: readonly Tool[];
  readonly resources: readonly Resource[];
}

interface NamedUris {
  readonly names: ReadonlyMap<string, UriNames>;
  readonly collisions: readonly Collision[];
}

/** Names the URIs of all members, anew when a list changed that may name a view. */
export class UriNaming {
  /** The naming for everyone, which this one follows in who owns a view; none for that one itself. */
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
    const same = known.find((each) => isSame(each.parts, parts));
    if (same !== undefined) return same.named;
    const agreed = this.#general.flatMap((naming) => [...naming.#owners]);
    this.#owners = new Map([...(areSettled ? this.#owners : []), ...agreed]);
    const named = nameUris(sources, this.#owners);
    this.#last = { parts, named };
    return named;
  }
}

/** Whether two lists have the same things. */
export function isSame(one: readonly unknown[], other: readonly unknown[]): boolean {
  return one.length === other.length && one.every((each, index) => each === other[index]);
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
    // A result may name the page of another member: that must lead nowhere.
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
 * The `_meta` of a tool for callers: its view under the URI that callers know. Where its server has views, a tool says whose it is: a
 * host finds the tools that a view may call by that.
 */
export function toAppMeta(tool: Tool, server: string, names: UriNames | undefined): Meta | undefined {
  const { _meta, name } = tool;
  if (names === undefined || names.views.size === 0) return _meta;
  const uri = viewUriOf(tool);
  const renamed = uri === undefined ? _meta : withViewUri(_meta ?? {}, names.toPublic(uri));
  return { ...renamed, [originKey]: { server, name } };
}
