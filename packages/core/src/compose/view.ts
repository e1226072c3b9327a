import { ScopeError, UriTemplateError } from "../errors/index.ts";
import {
  isAppOnly,
  isVisibleTo,
  viewUriOf,
  withViewUri,
  type Prompt,
  type Resource,
  type ResourceTemplate,
  type Tool,
  parseUriTemplate,
  type UriTemplate,
  withMembers,
} from "../mcp/index.ts";
import { spellingsOf } from "../provider/index.ts";
import { type Claim, type Collision, type Owner, type UriNames, isSkill, isView } from "./claims.ts";

/** Everything there is for callers of one kind, at one moment. */
export interface Snapshot {
  readonly tools: readonly Claim<Tool>[];
  readonly prompts: readonly Claim<Prompt>[];
  /**
   * Of every member that has them, the owner's first: a caller that may not use the
   * owner's may use another's.
   */
  readonly resources: readonly Claim<Resource>[];
  readonly templates: readonly Claim<ResourceTemplate>[];
  /** By member: the URIs that callers know its resources by. */
  readonly uris: ReadonlyMap<string, UriNames>;
  /** By member: whether it keeps a URI from all callers. */
  readonly withholds: ReadonlyMap<string, ((uri: string) => boolean) | undefined>;
  readonly collisions: readonly Collision[];
}

/** What one caller may see and use: the lists, and the only way from a name to its owner. */
export interface View {
  readonly tools: readonly Tool[];
  readonly prompts: readonly Prompt[];
  readonly resources: readonly Resource[];
  readonly templates: readonly ResourceTemplate[];
  /** By name. */
  readonly toolClaims: ReadonlyMap<string, Claim<Tool>>;
  readonly promptClaims: ReadonlyMap<string, Claim<Prompt>>;
  /** The server that lists a URI, or a template it fits, or has it as a view or in a skill. */
  resourceOwner(uri: string): ResourceOwner | undefined;
  templateOwner(uriTemplate: string): Owner | undefined;
  /**
   * Whether the caller may be told that a server's resource changed: it may use it, and does not
   * get it from another server.
   */
  mayHear(server: string, uri: string): boolean;
  /** Whether the caller may use anything of a member. */
  uses(member: string): boolean;
  /** Whether the caller may use a tool or prompt of this name, if there is one. */
  readonly allows: Policy;
  /** The same for a member's resource. */
  allowsUri(member: string, uri: string): boolean;
  /** Whether a server that the caller may use has views. */
  readonly hasApps: boolean;
  /** Tools that a view may call by their own names: of servers that have views, by own name. */
  readonly appTools: ReadonlyMap<string, readonly Claim<Tool>[]>;
  /** Servers that list anything with the scheme of this URI, which they may know without listing it. */
  likelyOwners(uri: string): readonly string[];
}

/** The owner of a resource. */
export interface ResourceOwner extends Owner {
  /** The owner's own URI, where that is another than the caller's. */
  readonly ownUri?: string;
}

interface ViewOptions {
  /** Between a member's name and a URI, where a policy judges a resource. */
  readonly separator: string;
  /** Whether the caller shows views, and so keeps tools that are for views alone from its model. */
  readonly showsViews: boolean;
}

/**
 * Whether a caller may use something: a tool or prompt by its name, a resource by `server__uri`; `ownName` is what its server
 * calls it, as far as that is known.
 */
export interface Policy {
  (name: string, ownName?: string): boolean;
  /** All scopes that a caller needs for something that it may use, if its token lacks one of them. */
  readonly lackingFor?: (name: string, ownName?: string) => readonly string[] | undefined;
}

/** Throws a `ScopeError` when the token of a caller lacks a scope for something that the caller may use. */
export function assertScopes({ lackingFor }: Policy, name: string, ownName: string): void {
  const scopes = lackingFor?.(name, ownName);
  if (scopes !== undefined) throw new ScopeError(scopes);
}

/** The same for resources, in every spelling that a server could read their URIs in. */
export function assertUriScopes(
  policy: Policy,
  servers: Iterable<string>,
  uris: readonly string[],
  separator: string,
): void {
  if (policy.lackingFor === undefined) return;
  for (const server of servers)
    for (const spelling of uris.flatMap((uri) => spellingsOf(uri)))
      assertScopes(policy, `${server}${separator}${spelling}`, spelling);
}

/** Allows everything. */
export const allowAll: Policy = () => true;

/** The part of a catalog that a policy allows. A thing that is not in the lists cannot be found by name either. */
export function createView(snapshot: Snapshot, policy: Policy, { separator, showsViews }: ViewOptions): View {
  const mayUse = (server: string, uri: string): boolean => {
    if (snapshot.withholds.get(server)?.(uri) === true) return false;
    return (
      policy === allowAll ||
      spellingsOf(uri).every((spelling) => policy(`${server}${separator}${spelling}`, spelling))
    );
  };
  const tools = snapshot.tools.filter(
    (claim) => policy(claim.key, claim.ownName) && (showsViews || !isForAppsOnly(claim, snapshot)),
  );
  const prompts = snapshot.prompts.filter(({ key, ownName }) => policy(key, ownName));
  const resources = snapshot.resources.filter(({ server, ownName }) => mayUse(server, ownName));
  const templates = snapshot.templates.filter(({ server, key }) => mayUse(server, key));
  // Of several servers with the same URI, the first that this caller may use.
  const listedResources = firstOfEach(resources);
  const listedTemplates = firstOfEach(templates);
  const resourceOwners = toMap(listedResources);
  const templateOwners = toMap(listedTemplates);
  let parsed: readonly { readonly template: UriTemplate; readonly owner: Owner }[] | undefined;
  const resourceOwner = (uri: string): ResourceOwner | undefined => {
    const owner = resourceOwners.get(uri);
    if (owner !== undefined) return owner.ownName === uri ? owner : { ...owner, ownUri: owner.ownName };
    if (isView(uri) || isSkill(uri)) return namedOwner(uri, snapshot, mayUse) ?? bareOwner(uri, resources);
    parsed ??= templates.flatMap((claim) => parse(claim));
    // A caller that may use a template must not reach forbidden resources by it.
    return parsed.find(
      ({ template, owner: { server } }) => mayUse(server, uri) && template.match(uri) !== undefined,
    )?.owner;
  };
  let listedTools: readonly Tool[] | undefined;
  let appTools: View["appTools"] | undefined;
  return {
    get tools() {
      return (listedTools ??= Object.freeze(
        tools.map((claim) => withoutDeniedView(claim, snapshot, mayUse)),
      ));
    },
    hasApps: tools.some((claim) => hasViews(claim, snapshot)),
    get appTools() {
      return (appTools ??= toAppTools(tools, snapshot));
    },
    prompts: toItems(prompts),
    resources: toItems(listedResources),
    templates: toItems(listedTemplates),
    toolClaims: toMap(tools),
    promptClaims: toMap(prompts),
    templateOwner: (uriTemplate) => templateOwners.get(uriTemplate),
    resourceOwner,
    mayHear: (server, uri) => {
      const own = snapshot.uris.get(server)?.toOwn(uri) ?? uri;
      return mayUse(server, own) && (resourceOwner(uri)?.server ?? server) === server;
    },
    uses: (member) =>
      [...tools, ...prompts, ...resources, ...templates].some(({ server }) => server === member),
    allowsUri: mayUse,
    allows: policy,
    likelyOwners: (uri) => {
      const scheme = schemeOf(uri);
      const all = [...resources, ...templates].filter(({ key }) => schemeOf(key) === scheme);
      const servers = [...new Set(all.map(({ server }) => server))].filter((server) => mayUse(server, uri));
      if (!isView(uri) && !isSkill(uri)) return servers;
      // A page or a file of a skill must not come from another server than the one that was meant.
      const isNamed = [...snapshot.uris.values()].some((names) => names.toOwn(uri) !== undefined);
      return isNamed || servers.length > 1 ? [] : servers;
    },
  };
}

type MayUse = (server: string, uri: string) => boolean;

/** Looks at the server's own definition, so that no tool has to be renamed for this. */
function isForAppsOnly(claim: Claim<Tool>, snapshot: Snapshot): boolean {
  return hasViews(claim, snapshot) && isAppOnly(claim.ownItem ?? claim.item);
}

function hasViews({ server }: Owner, { uris }: Snapshot): boolean {
  return (uris.get(server)?.views.size ?? 0) > 0;
}

/** A tool as a caller sees it: without its app view, if the caller may not read that. */
function withoutDeniedView(claim: Claim<Tool>, snapshot: Snapshot, mayUse: MayUse): Tool {
  const { server, item, ownItem = item } = claim;
  const own = hasViews(claim, snapshot) ? viewUriOf(ownItem) : undefined;
  if (own === undefined || mayUse(server, own) || item._meta === undefined) return item;
  return withMembers(item, { _meta: withViewUri(item._meta, undefined) });
}

/** The owner that a URI of a view or a skill names. */
function namedOwner(uri: string, { uris }: Snapshot, mayUse: MayUse): ResourceOwner | undefined {
  for (const [server, names] of uris) {
    const own = names.toOwn(uri);
    if (own === undefined || !mayUse(server, own)) continue;
    return { server, ownName: own, ownUri: own, uris: names.differs || own !== uri ? names : undefined };
  }
  return undefined;
}

/** The owner of a skill by the URI that its server has for it, while no other server has the same. */
function bareOwner(uri: string, resources: readonly Claim<Resource>[]): ResourceOwner | undefined {
  const [owner, ...others] = resources.filter(({ ownName }) => ownName === uri);
  return owner === undefined || others.length > 0 || isView(uri) ? undefined : { ...owner, ownUri: uri };
}

function toAppTools(tools: readonly Claim<Tool>[], snapshot: Snapshot): View["appTools"] {
  const byName = new Map<string, Claim<Tool>[]>();
  for (const claim of tools) {
    const { ownName } = claim;
    if (!hasViews(claim, snapshot) || !isVisibleTo(claim.ownItem ?? claim.item, "app")) continue;
    byName.set(ownName, [...(byName.get(ownName) ?? []), claim]);
  }
  return byName;
}

function firstOfEach<T>(claims: readonly Claim<T>[]): readonly Claim<T>[] {
  const byKey = new Map<string, Claim<T>>();
  for (const claim of claims) if (!byKey.has(claim.key)) byKey.set(claim.key, claim);
  return [...byKey.values()];
}

function toMap<T>(claims: readonly Claim<T>[]): ReadonlyMap<string, Claim<T>> {
  return new Map(claims.map((claim) => [claim.key, claim]));
}

function toItems<T>(claims: readonly Claim<T>[]): readonly T[] {
  return Object.freeze(claims.map(({ item }) => item));
}

/** A template that cannot be parsed matches nothing. */
function parse({
  item,
  server,
  ownName,
}: Claim<ResourceTemplate>): readonly { readonly template: UriTemplate; readonly owner: Owner }[] {
  try {
    return [{ template: parseUriTemplate(item.uriTemplate), owner: { server, ownName } }];
  } catch (error) {
    if (error instanceof UriTemplateError) return [];
    throw error;
  }
}

function schemeOf(uri: string): string {
  return uri
    .trimStart()
    .slice(0, uri.trimStart().indexOf(":") + 1)
    .toLowerCase();
}
