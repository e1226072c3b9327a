import { UriTemplateError } from "../../errors/uri-template-error.ts";
import type { Prompt, Resource, ResourceTemplate, Tool } from "../../mcp/types.ts";
import { parseUriTemplate, type UriTemplate } from "../../mcp/uri-template.ts";
import type { Claim, Collision, Owner } from "./claims.ts";
import { spellingsOf } from "./uri-spellings.ts";

/** Everything there is for callers of one kind, at one moment. */
export interface Snapshot {
  readonly tools: readonly Claim<Tool>[];
  readonly prompts: readonly Claim<Prompt>[];
  /** Of every member that has them: a caller that may not use the first's may use another's. The owner's come first. */
  readonly resources: readonly Claim<Resource>[];
  readonly templates: readonly Claim<ResourceTemplate>[];
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
  /** The server that lists a URI, or a template it fits. */
  resourceOwner(uri: string): Owner | undefined;
  templateOwner(uriTemplate: string): Owner | undefined;
  /** Whether the caller may hear that a server's resource changed: it may use it, and does not have it from elsewhere. */
  mayHear(server: string, uri: string): boolean;
  /** Whether the caller may use anything of a member. */
  uses(member: string): boolean;
  /** Whether the caller may use a tool or prompt of this name, if there is one. */
  readonly allows: Policy;
  /** The same of a member's resource. */
  allowsUri(member: string, uri: string): boolean;
  /** Servers that list anything with the scheme of this URI, which they may know without listing it. */
  likelyOwners(uri: string): readonly string[];
}

/**
 * Whether a caller may use something: a tool or prompt by its name, a resource by `server__uri`; `ownName` is what its server
 * calls it, as far as that is known.
 */
export type Policy = (name: string, ownName?: string) => boolean;

/** Leaves everything. */
export const everything: Policy = () => true;

/** The part of a catalog that a policy allows. A thing that is not in the lists cannot be found by name either. */
export function createView(snapshot: Snapshot, policy: Policy, separator: string): View {
  const mayUse = (server: string, uri: string): boolean => {
    if (snapshot.withholds.get(server)?.(uri) === true) return false;
    return (
      policy === everything ||
      spellingsOf(uri).every((spelling) => policy(`${server}${separator}${spelling}`, spelling))
    );
  };
  const tools = snapshot.tools.filter(({ key, ownName }) => policy(key, ownName));
  const prompts = snapshot.prompts.filter(({ key, ownName }) => policy(key, ownName));
  const resources = snapshot.resources.filter(({ server, key }) => mayUse(server, key));
  const templates = snapshot.templates.filter(({ server, key }) => mayUse(server, key));
  // Of several servers with the same URI, the first that this caller may use.
  const listedResources = firstOfEach(resources);
  const listedTemplates = firstOfEach(templates);
  const resourceOwners = toMap(listedResources);
  const templateOwners = toMap(listedTemplates);
  let parsed: readonly { readonly template: UriTemplate; readonly owner: Owner }[] | undefined;
  const resourceOwner = (uri: string): Owner | undefined => {
    const owner = resourceOwners.get(uri);
    if (owner !== undefined) return owner;
    parsed ??= templates.flatMap((claim) => parse(claim));
    // A caller that may use a template must not reach forbidden resources by it.
    return parsed.find(
      ({ template, owner: { server } }) => mayUse(server, uri) && template.match(uri) !== undefined,
    )?.owner;
  };
  let listedTools: readonly Tool[] | undefined;
  return {
    get tools() {
      return (listedTools ??= toItems(tools));
    },
    prompts: toItems(prompts),
    resources: toItems(listedResources),
    templates: toItems(listedTemplates),
    toolClaims: toMap(tools),
    promptClaims: toMap(prompts),
    templateOwner: (uriTemplate) => templateOwners.get(uriTemplate),
    resourceOwner,
    mayHear: (server, uri) => mayUse(server, uri) && (resourceOwner(uri)?.server ?? server) === server,
    uses: (member) =>
      [...tools, ...prompts, ...resources, ...templates].some(({ server }) => server === member),
    allowsUri: mayUse,
    allows: policy,
    likelyOwners: (uri) => {
      const scheme = schemeOf(uri);
      const all = [...resources, ...templates].filter(({ key }) => schemeOf(key) === scheme);
      const servers = new Set(all.map(({ server }) => server));
      return [...servers].filter((server) => mayUse(server, uri));
    },
  };
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

/** A template that cannot be parsed fits nothing. */
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
