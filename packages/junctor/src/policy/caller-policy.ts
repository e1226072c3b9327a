import {
  anyone,
  type Catalog,
  type ReservedFor,
  type Naming,
  allowAll,
  type Policy,
  type View,
} from "@junctor/core/compose";
import { toDeclared, toRelayable } from "@junctor/core/mcp";
import type { AuditRecord, CallContext, CallerInfo } from "@junctor/core/provider";
import { type AuditLogOptions, type DescribeCall, type OwnerOf, createGlobs } from "@junctor/server/internal";
import { wasAskedToConnect } from "../accounts/index.ts";
import { createReservations, createServerNames, isNamedFor, toToolName } from "../catalog/index.ts";
import { hasCertificates, isOpen, losesMounts, toCredentials, type GatewayConfig } from "../config/index.ts";
import { readResultName, searchToolNames } from "../context/index.ts";
import type { GatewayServer } from "../servers/index.ts";
import { opensMethod } from "./opened-methods.ts";
import { createProof, findSignedOut, type Proof, type ProofOptions } from "./proof.ts";
import type { CallerRules } from "./rules.ts";

/** What a config says about callers: how they prove who they are, and what they may see and use. A value; an edit makes another. */
export interface CallerPolicy {
  readonly config: GatewayConfig;
  readonly proof: Proof;
  /** Whether callers need no proof. */
  readonly isOpen: boolean;
  /** The rules about callers, if the config has some. */
  readonly rules: CallerRules | undefined;
  readonly viewFor: (caller: CallerInfo) => View;
  /** What callers without rules of their own may see and use. */
  readonly generalView: () => View;
  /** The view of a caller at a mount, which narrows it. */
  readonly viewAt: (mount: string) => (caller: CallerInfo) => View;
  /** Whether a caller may come in at a mount. */
  readonly mayUse: (mount: string, caller: string | undefined) => boolean;
  /** The mounts a caller may use, and nothing else; undefined for one that is not bound. */
  readonly boundTo: (caller: string) => readonly string[] | undefined;
  /** The owner of a tool, also of one that the caller may not use or the config takes away: for the record of a refusal. */
  readonly ownerOf: OwnerOf;
  /** Whether a call changes nothing, as far as its server says. */
  readonly isReadOnly: NonNullable<AuditLogOptions["isReadOnly"]>;
  /** The caller of a call and the decision about it, for its record; nothing where there is no more to say than a name. */
  readonly describe: DescribeCall;
  /** Which names are kept for one server. */
  readonly reservedFor: ReservedFor;
}

/** Whether callers without a name are served although the config has keys. On stdio, the person who started the gateway is trusted. */
export type Unnamed = "refused" | "trusted";

export interface CallerPolicyOptions extends ProofOptions {
  readonly catalog: Catalog;
  readonly unnamed: Unnamed;
  readonly servers: () => readonly GatewayServer[];
  /** The rules of the config, compiled. */
  readonly rules?: CallerRules | undefined;
  /** The policy of the config before an edit. */
  readonly earlier?: CallerPolicy | undefined;
}

/** Stands for all callers with a token or a certificate. */
const signedIn = Symbol("signed in");

/** By the names of callers. A caller that is not there may use nothing. */
type Policies = ReadonlyMap<CallerName, Policy>;
type CallerName = string | undefined | typeof signedIn;

/** Who may use which names, by caller and by mount. */
interface Permissions {
  /** Whether callers need no proof. */
  readonly isOpen: boolean;
  /** What the config says for all callers. */
  readonly general: Policy;
  /** What the names of callers with a token or a certificate begin with. */
  readonly prefixes: readonly string[];
  readonly policies: Policies;
  /** By the names of mounts. */
  readonly mounted: ReadonlyMap<string, Policies>;
}

/** The policy of a config. A caller whose key is not in it may use nothing. */
export function createCallerPolicy(config: GatewayConfig, options: CallerPolicyOptions): CallerPolicy {
  const { catalog, unnamed, servers, rules, earlier } = options;
  const naming = toNaming(config);
  const credentials = toCredentials(config);
  const viewBy = (caller: CallerInfo, policy: Policy = denyAll, rulesHere = rules): View =>
    catalog.viewFor(caller, rulesHere === undefined ? policy : rulesHere.narrow(policy, caller.identity));
  /** Whether a public name, or a `server__uri`, is of one server. */
  const isOf: OfServer = (server, separator) => (name) => {
    const { toolClaims, promptClaims } = catalog.viewFor(anyone, allowAll);
    const owner = toolClaims.get(name) ?? promptClaims.get(name);
    if (owner !== undefined) return owner.server === server;
    // What a server lists to one caller is in no list for all. A URI has a colon, and a name of a tool has none.
    const isOwn = credentials.get(server) === "own" && !name.includes(":");
    return name.startsWith(`${server}${separator}`) || (isOwn && namedOwner(name)?.server === server);
  };
  const permissions = toPermissions(config, unnamed, isOf);
  const namedOwner = (tool: string): Owner | undefined => findNamedOwner(config, tool);
  /** Whose credential a call is made with; undefined where no server of the config has one. */
  const credentialOf = (tool: string, context: CallContext): AuditRecord["credential"] => {
    if (credentials.size === 0) return undefined;
    const owner = catalog.viewFor(context, allowAll).toolClaims.get(tool) ?? namedOwner(tool);
    return owner && credentials.get(owner.server);
  };
  return {
    config,
    proof: createProof(config, options, earlier?.proof),
    isOpen: permissions.isOpen,
    rules,
    viewFor: (caller) => viewBy(caller, policyIn(permissions.policies, permissions, caller.caller)),
    generalView: () => {
      const { isOpen, general } = permissions;
      return isOpen ? viewBy(anyone, general) : catalog.viewFor(anyone, general);
    },
    viewAt: (mount) => (caller) =>
      viewBy(caller, policyAt(permissions, mount, caller.caller), rules?.at(mount)),
    mayUse: (mount, caller) => policyAt(permissions, mount, caller) !== undefined,
    boundTo: (caller) => config.keys.find(({ name }) => name === caller)?.profiles,
    ownerOf: ({ part, name }, context) => {
      const view = catalog.viewFor(context, allowAll);
      if (part === undefined) {
        const owner = servers().find(({ config }) => opensMethod(config, name));
        return owner && { server: owner.config.name };
      }
      if (part === "tools")
        return view.toolClaims.get(name) ?? findWithholding(servers(), naming, name) ?? namedOwner(name);
      const owner = view.promptClaims.get(name) ?? view.templateOwner(name) ?? view.resourceOwner(name);
      return owner ?? namedOwner(name);
    },
    isReadOnly: ({ part, method, name }, context) => {
      if (part !== undefined && method !== "tools/call") return true;
      const claim = catalog.viewFor(context, allowAll).toolClaims.get(name);
      return claim === undefined ? ownReadTools.has(name) : claim.item.annotations?.readOnlyHint === true;
    },
    describe: (call, context, ownName) => {
      const { caller, identity } = context;
      const credential = credentialOf(call.name, context);
      if (identity?.issuer === undefined && rules === undefined && credential !== "own") return {};
      const decided = rules?.decide(identity, call.name, ownName);
      const isDenied = policyIn(permissions.policies, permissions, caller)?.(call.name, ownName) !== true;
      const { issuer, clientId } = identity ?? {};
      return {
        issuer,
        clientId,
        decision: isDenied ? "deny" : wasAskedToConnect(context) ? "connect" : (decided?.kind ?? "allow"),
        credential,
        rule: decided?.rule,
      };
    },
    reservedFor: createReservations([...config.servers, ...config.disabled], naming),
  };
}

type Owner = NonNullable<ReturnType<OwnerOf>>;

/** The server that has a tool which would have this name, if a rule of the config did not leave it out. */
function findWithholding(servers: readonly GatewayServer[], naming: Naming, tool: string): Owner | undefined {
  for (const each of servers) {
    const { config: server } = each;
    const names = createServerNames(server, naming);
    const hidden = each
      .listedFor()
      .tools.find(({ name }) => names.tool(name) === undefined && toToolName(server, name, naming) === tool);
    if (hidden !== undefined) return { server: server.name, ownName: hidden.name };
  }
  return undefined;
}

/** The server that the prefix of a name belongs to, even if it lists no such tool or is disabled. */
function findNamedOwner(config: GatewayConfig, tool: string): Owner | undefined {
  const all = [...config.servers, ...config.disabled];
  const named = all.find((server) => isNamedFor(server, tool, toNaming(config)));
  return named === undefined ? undefined : { server: named.name };
}

/** The callers that must come in again after an edit of the config; undefined for those without a name. */
export function findRevoked(before: CallerPolicy, after: CallerPolicy): readonly (string | undefined)[] {
  const bound = after.config.keys
    .map(({ name }) => name)
    .filter((name) => losesMounts(name, before.config, after.config));
  return [...new Set([...findSignedOut(before.proof, after.proof), ...bound])];
}

type OfServer = (server: string, separator: string) => Policy;

function toPermissions(config: GatewayConfig, unnamed: Unnamed, isOf: OfServer): Permissions {
  const { keys, issuers } = config;
  const general = createGlobs(orAll(config.allow), config.deny);
  const all = new Map<CallerName, Policy>(
    keys.map(({ name, allow, deny }) => [name, both(general, createGlobs(orAll(allow), deny))]),
  );
  if (isOpen(config) || unnamed === "trusted") all.set(undefined, general);
  const prefixes = [...issuers.map(({ name }) => `${name}:`), ...(hasCertificates(config) ? ["cert:"] : [])];
  if (prefixes.length > 0) all.set(signedIn, general);
  const bound = new Map<CallerName, readonly string[]>(
    keys.flatMap(({ name, profiles }) => (profiles === undefined ? [] : [[name, profiles]])),
  );
  const policies = new Map([...all].filter(([caller]) => !bound.has(caller)));
  const mounts = [
    ...config.profiles.map(({ name, allow, deny }) => [name, createGlobs(orAll(allow), deny)] as const),
    ...config.servers.map(({ name }) => [name, isOf(name, config.separator)] as const),
  ];
  const mounted = new Map(
    mounts.map(([mount, own]) => {
      const mine = [...all].filter(([caller]) => bound.get(caller)?.includes(mount) !== false);
      return [
        mount,
        new Map<CallerName, Policy>(mine.map(([caller, policy]) => [caller, both(policy, own)])),
      ];
    }),
  );
  return { isOpen: isOpen(config), general, prefixes, policies, mounted };
}

function both(one: Policy, other: Policy): Policy {
  return (name, ownName) => one(name, ownName) && other(name, ownName);
}

function policyAt(permissions: Permissions, mount: string, caller: string | undefined): Policy | undefined {
  const policies = permissions.mounted.get(mount);
  return policies && policyIn(policies, permissions, caller);
}

function policyIn(
  policies: Policies,
  { isOpen: isFree, prefixes }: Permissions,
  caller: string | undefined,
): Policy | undefined {
  const own = policies.get(isFree ? undefined : caller);
  if (own !== undefined || caller === undefined) return own;
  return prefixes.some((prefix) => caller.startsWith(prefix)) ? policies.get(signedIn) : undefined;
}

/** The naming of a config. */
export function toNaming({ separator }: GatewayConfig): Naming {
  return { separator, maxLength: 64 };
}

/** The facts about a caller that the lists of some servers depend on. */
export interface ListVariety {
  /** Which callers have connections of their own to some server, on which they may see other lists than the rest. */
  readonly owners: "all" | "askable" | "none";
  /** Whether a server may list other things for a caller that declares an extension. */
  readonly hasVariants: boolean;
  /** The ids of extensions that the config opened for some server. */
  readonly opened: readonly string[];
}

/**
 * The kind of a caller: by its era, what it offers and declares, and by who it is where it has connections of its own. Callers of one
 * kind see the same lists.
 */
export function toCallerKind(
  { caller, capabilities, revision, session }: CallerInfo,
  { owners, hasVariants, opened }: ListVariety,
): unknown {
  const relayable = toRelayable(capabilities, revision);
  const { key, isLegacy } = relayable;
  const declared =
    hasVariants && capabilities.extensions !== undefined ? toDeclared(capabilities, opened).key : "";
  const isOwn = owners === "all" || (owners === "askable" && key !== "");
  if (isOwn) return session ?? JSON.stringify([caller, isLegacy, key, declared]);
  return declared === "" ? relayable : JSON.stringify([isLegacy, key, declared]);
}

/** Tools of the gateway's own that profiles have; they change nothing. */
const ownReadTools: ReadonlySet<string> = new Set([
  searchToolNames.search,
  searchToolNames.describe,
  readResultName,
]);

const orAll = (allow: readonly string[]): readonly string[] | undefined =>
  allow.length === 0 ? undefined : allow;

const denyAll: Policy = () => false;
