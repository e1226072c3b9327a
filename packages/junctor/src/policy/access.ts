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
import { anybody, type Authenticate } from "@junctor/server";
import { type AuditLogOptions, type DescribeCall, type OwnerOf, createGlobs } from "@junctor/server/internal";
import { wasAskedToConnect } from "../accounts/index.ts";
import { createReservations, createServerNames, isNamedFor, toToolName } from "../catalog/index.ts";
import { hasCertificates, isOpen, losesMounts, toCredentials, type GatewayConfig } from "../config/index.ts";
import { readResultName, surfaceNames } from "../context/index.ts";
import type { GatewayServer } from "../servers/index.ts";
import type { Tokens } from "../tokens/index.ts";
import { opensMethod } from "./opened-methods.ts";
import { createProof, type ProofParts } from "./proof.ts";
import type { CallerRules } from "./rules.ts";

/** The callers of a gateway: which keys they present, and what they may see and use. */
export interface Access {
  /** Finds a caller by its key or token; undefined when the config has neither, and every caller may come in. */
  readonly authenticate: Authenticate | undefined;
  /** The same, always there: it lets every caller in while the config has neither. */
  readonly admit: Authenticate;
  /** The rules about callers, if the config has some. */
  readonly rules: CallerRules | undefined;
  /** The judge of tokens; undefined without issuers. */
  readonly tokens: Tokens | undefined;
  readonly viewFor: (caller: CallerInfo) => View;
  /** What callers without rules of their own may see and use. */
  readonly generalView: () => View;
  /** The same at a mount, which narrows it. */
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
  /** Takes another config. Gives the callers whose keys or issuers are gone; undefined for those without a name. */
  apply(config: GatewayConfig, compiled: CallerRules | undefined): readonly (string | undefined)[];
}

/** Whether callers without a name are served although the config has keys. On stdio, the person who started the gateway is trusted. */
export type Unnamed = "refused" | "trusted";

interface AccessOptions extends ProofParts {
  readonly catalog: Catalog;
  readonly unnamed: Unnamed;
  readonly servers: () => readonly GatewayServer[];
  /** The rules of the config, compiled. */
  readonly rules?: CallerRules | undefined;
}

/** Stands for all callers with a token or a certificate. */
const signedIn = Symbol("signed in");

/** By the names of callers. A caller that is not there may use nothing. */
type Policies = ReadonlyMap<CallerName, Policy>;
type CallerName = string | undefined | typeof signedIn;

/** The part of a config that access follows. */
interface Rules {
  readonly config: GatewayConfig;
  /** Whether callers need no proof. */
  readonly isOpen: boolean;
  /** What the config says for all callers. */
  readonly general: Policy;
  /** What the names of callers with a token or a certificate begin with. */
  readonly prefixes: readonly string[];
  readonly policies: Policies;
  /** By the names of mounts. */
  readonly mounted: ReadonlyMap<string, Policies>;
  readonly reservedFor: ReservedFor;
  /** By server: whether its callers have accounts of their own. Empty when none has. */
  readonly credentials: ReadonlyMap<string, AuditRecord["credential"]>;
}

/** The access a config gives. A caller whose key is gone may use nothing. */
export function createAccess(first: GatewayConfig, options: AccessOptions): Access {
  const { catalog, unnamed, servers } = options;
  let byCaller = options.rules;
  const viewBy = (caller: CallerInfo, policy: Policy = denyAll, rulesHere = byCaller): View =>
    catalog.viewFor(caller, rulesHere === undefined ? policy : rulesHere.narrow(policy, caller.identity));
  const proof = createProof(first, options);
  /** Whether a public name, or a `server__uri`, is of one server. */
  const isOf: OfServer = (server, separator) => (name) => {
    const { toolClaims, promptClaims } = catalog.viewFor(anyone, allowAll);
    const owner = toolClaims.get(name) ?? promptClaims.get(name);
    if (owner !== undefined) return owner.server === server;
    // What a server lists to one caller is in no list for all. A URI has a colon, and a name of a tool has none.
    const isOwn = rules.credentials.get(server) === "own" && !name.includes(":");
    return name.startsWith(`${server}${separator}`) || (isOwn && namedOwner(name)?.server === server);
  };
  let rules = toRules(first, unnamed, isOf);
  /** The server that has a tool which would have this name, if a rule of the config did not leave it out. */
  const withheldBy = (tool: string): ReturnType<OwnerOf> => {
    const naming = toNaming(rules.config);
    for (const each of servers()) {
      const { config: server } = each;
      const names = createServerNames(server, naming);
      const hidden = each
        .listedFor()
        .tools.find(
          ({ name }) => names.tool(name) === undefined && toToolName(server, name, naming) === tool,
        );
      if (hidden !== undefined) return { server: server.name, ownName: hidden.name };
    }
    return undefined;
  };
  /** The server that the prefix of a name belongs to, even if it lists no such tool or is disabled. */
  const namedOwner = (tool: string): ReturnType<OwnerOf> => {
    const { config } = rules;
    const all = [...config.servers, ...config.disabled];
    const named = all.find((server) => isNamedFor(server, tool, toNaming(config)));
    return named === undefined ? undefined : { server: named.name };
  };
  /** Whose credential a call is made with; undefined where the config says of no server that it has one. */
  const credentialOf = (tool: string, context: CallContext): AuditRecord["credential"] => {
    if (rules.credentials.size === 0) return undefined;
    const owner = catalog.viewFor(context, allowAll).toolClaims.get(tool) ?? namedOwner(tool);
    return owner && rules.credentials.get(owner.server);
  };
  return {
    get authenticate(): Authenticate | undefined {
      return rules.isOpen ? undefined : proof.authenticate;
    },
    admit: Object.assign(
      (...request: Parameters<Authenticate>) => (rules.isOpen ? anybody : proof.authenticate(...request)),
      { ...proof.authenticate },
    ),
    get tokens() {
      return proof.tokens;
    },
    viewFor: (caller) => viewBy(caller, policyIn(rules.policies, rules, caller.caller)),
    generalView: () =>
      rules.isOpen ? viewBy(anyone, rules.general) : catalog.viewFor(anyone, rules.general),
    viewAt: (mount) => (caller) => viewBy(caller, policyAt(rules, mount, caller.caller), byCaller?.at(mount)),
    get rules() {
      return byCaller;
    },
    mayUse: (mount, caller) => policyAt(rules, mount, caller) !== undefined,
    boundTo: (caller) => rules.config.keys.find(({ name }) => name === caller)?.profiles,
    ownerOf: ({ part, name }, context) => {
      const view = catalog.viewFor(context, allowAll);
      if (part === undefined) {
        const owner = servers().find(({ config }) => opensMethod(config, name));
        return owner && { server: owner.config.name };
      }
      if (part === "tools") return view.toolClaims.get(name) ?? withheldBy(name) ?? namedOwner(name);
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
      if (identity?.issuer === undefined && byCaller === undefined && credential !== "own") return {};
      const decided = byCaller?.decide(identity, call.name, ownName);
      const isDenied = policyIn(rules.policies, rules, caller)?.(call.name, ownName) !== true;
      const { issuer, clientId } = identity ?? {};
      return {
        issuer,
        clientId,
        decision: isDenied ? "deny" : wasAskedToConnect(context) ? "connect" : (decided?.kind ?? "allow"),
        credential,
        rule: decided?.rule,
      };
    },
    get reservedFor() {
      return rules.reservedFor;
    },
    apply: (config, compiled) => {
      byCaller = compiled;
      const { config: last } = rules;
      rules = toRules(config, unnamed, isOf);
      const bound = config.keys.map(({ name }) => name).filter((name) => losesMounts(name, last, config));
      return [...new Set([...proof.apply(config), ...bound])];
    },
  };
}

type OfServer = (server: string, separator: string) => Policy;

function toRules(config: GatewayConfig, unnamed: Unnamed, isOf: OfServer): Rules {
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
  const reservedFor = createReservations([...config.servers, ...config.disabled], toNaming(config));
  const credentials = toCredentials(config);
  return { config, isOpen: isOpen(config), general, prefixes, policies, mounted, reservedFor, credentials };
}

function both(one: Policy, other: Policy): Policy {
  return (name, ownName) => one(name, ownName) && other(name, ownName);
}

function policyAt(rules: Rules, mount: string, caller: string | undefined): Policy | undefined {
  const policies = rules.mounted.get(mount);
  return policies && policyIn(policies, rules, caller);
}

function policyIn(
  policies: Policies,
  { isOpen: isFree, prefixes }: Rules,
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

/** Callers of one kind see the same lists. */
export interface CallerKinds {
  /** Which callers have connections of their own to some server, on which they may see other lists than the rest. */
  owners: "all" | "askable" | "none";
  /** Whether a server may list other things for a caller that declares an extension. */
  hasVariants: boolean;
  /** The ids of extensions that the config opened for some server. */
  opened: readonly string[];
  readonly of: (caller: CallerInfo) => unknown;
}

/** Kinds of callers: by their era, what they offer and declare, and by who they are where they have connections of their own. */
export function createCallerKinds(): CallerKinds {
  const kinds: CallerKinds = {
    owners: "none",
    hasVariants: false,
    opened: [],
    of: ({ caller, capabilities, revision, session }) => {
      const relayable = toRelayable(capabilities, revision);
      const { key, isLegacy } = relayable;
      const declares = kinds.hasVariants && capabilities.extensions !== undefined;
      const declared = declares ? toDeclared(capabilities, kinds.opened).key : "";
      const isOwn = kinds.owners === "all" || (kinds.owners === "askable" && key !== "");
      if (isOwn) return session ?? JSON.stringify([caller, isLegacy, key, declared]);
      return declared === "" ? relayable : JSON.stringify([isLegacy, key, declared]);
    },
  };
  return kinds;
}

/** Tools of the gateway's own that profiles have; they change nothing. */
const ownReadTools: ReadonlySet<string> = new Set([
  surfaceNames.search,
  surfaceNames.describe,
  readResultName,
]);

const orAll = (allow: readonly string[]): readonly string[] | undefined =>
  allow.length === 0 ? undefined : allow;

const denyAll: Policy = () => false;
