import { allowAll, anyone, createComposition, type UriNames, type View } from "@junctor/core/compose";
import { NotFoundError } from "@junctor/core/errors";
import { type Extensions, extensionIds, methods } from "@junctor/core/mcp";
import {
  type CallContext,
  type CallerInfo,
  type Operation,
  type Provider,
  withMiddleware,
} from "@junctor/core/provider";
import { withApproval } from "../approvals/index.ts";
import { abandonedCall, notParked, isParkedState } from "../bridge/index.ts";
import { withOwnNames } from "../catalog/index.ts";
import { isOpen, type ProfileConfig } from "../config/index.ts";
import {
  type CapOf,
  type BudgetOptions,
  readResultName,
  type ServerOf,
  toCapOf,
  withBudget,
  withProfile,
  withSearch,
} from "../context/index.ts";
import { hideInData } from "../log/index.ts";
import { withIdempotency } from "../once/index.ts";
import { withOpenedMethods } from "../policy/index.ts";
import { offeredExtensions } from "../servers/index.ts";
import type { Generation } from "./generation.ts";
import { type ServedGroup, withServedGroups } from "./groups.ts";
import { isKnownIn, noteList } from "./list-notes.ts";
import type { Runtime } from "./runtime.ts";
import { createWaitingLog } from "./server-log.ts";

/** A way in to the servers of a gateway: all of them, a profile, or one server under its own names. */
export type Entrance =
  | { readonly kind: "all"; readonly name?: undefined }
  | { readonly kind: "profile"; readonly name: string; readonly profile: ProfileConfig }
  | { readonly kind: "server"; readonly name: string };

/** What an entrance is made with. */
interface StackParts extends Omit<Generation, "entrances" | "readers"> {
  readonly runtime: Runtime;
  /** The rest of long results. */
  readonly results: Pick<BudgetOptions, "kept" | "elsewhere">;
}

type Layer = (inner: Provider) => Provider;

/** The provider of an entrance, outermost layer first. Read it as the way of a call; lists and results come back the same way. */
export function createStack(entrance: Entrance, parts: StackParts): Provider {
  const profile = entrance.kind === "profile" ? entrance.profile : undefined;
  const viewFor = entrance.name === undefined ? parts.policy.viewFor : parts.policy.viewAt(entrance.name);
  return stack(
    once(entrance, parts), // a call that comes with a key runs once, and its retries get the end that the caller got
    parts.config.drafts.includes("groups") && groups(entrance, viewFor, parts), // of what is listed from here on
    profile !== undefined && profile.tools !== "all" && search(profile, viewFor, parts), // finds by the profile's names
    entrance.kind === "server" && ownNames(entrance.name, viewFor, parts),
    caps(entrance, parts), // those of the profile, then those of servers
    profile !== undefined && profileNames(profile),
    middleware(parts), // names of the gateway from here on: logs, audit, rate, time, the user's, redaction
    approval(entrance, parts), // what a rule asks about is not sent before a person agreed to it
    (inner) => withOpenedMethods(inner, () => parts.runtime.fleet.servers, viewFor),
    catalog(viewFor, parts), // rules, keys and profiles are its view: what a caller may not use is not there
  );
}

/** Puts layers around the last one; a layer that is false is left out. */
function stack(...layers: readonly [...(Layer | false)[], Provider]): Provider {
  const innermost = layers.at(-1) as Provider;
  const around = layers.slice(0, -1) as readonly (Layer | false)[];
  return around.reduceRight<Provider>((inner, layer) => (layer === false ? inner : layer(inner)), innermost);
}

function once({ name }: Entrance, { runtime: { keptCalls } }: StackParts): Layer | false {
  return keptCalls !== undefined && ((inner) => withIdempotency(inner, { calls: keptCalls, scope: name }));
}

/** Rules that ask. The names are those of rules; what a person sees is what is sent, after all that a middleware changes. */
function approval({ name: entrance }: Entrance, parts: StackParts): Layer | false {
  const { policy, config, runtime } = parts;
  const rules = entrance === undefined ? policy.rules : policy.rules?.at(entrance);
  if (rules?.canAsk !== true) return false;
  const ownerOf = (operation: Operation, context: CallContext): ReturnType<typeof policy.ownerOf> =>
    policy.ownerOf(operation, context);
  return (inner) =>
    withApproval(inner, {
      ruleFor: (operation, context) => {
        const { part, name } = operation;
        const owner = ownerOf(operation, context);
        const isNamed = part === "tools" || part === "prompts" || part === undefined || owner === undefined;
        const listed = isNamed ? name : `${owner.server}${config.separator}${name}`;
        const found = rules.askFor(context.identity, listed, owner?.ownName ?? name, operation.arguments);
        return found?.approval && { path: found.path, ...found.approval };
      },
      approvals: runtime.approvals,
      serverOf: (operation, context) => ownerOf(operation, context)?.server,
      scope: entrance,
      policy: JSON.stringify([config.rules, config.allow, config.deny, config.profiles]),
      hide: runtime.hide,
    });
}

/** The middleware, also around tools that a layer outside of it adds. */
function middleware({ chain }: StackParts): Layer {
  return (inner) => withMiddleware(inner, chain.middlewares);
}

function catalog(viewFor: (caller: CallerInfo) => View, parts: StackParts): Provider {
  const { config, naming, pins, runtime } = parts;
  const { fleet, clock, describeFailure, hide } = runtime;
  return createComposition({
    catalog: runtime.catalog,
    viewFor,
    triesAll: false,
    onChange: runtime.changes.onChange,
    onWaiting: createWaitingLog(runtime.log),
    offers: (caller) => ({
      // Groups are a draft: the layer of groups serves them.
      serves: (method) => methods.has(method) && methods.get(method)?.extension !== extensionIds.groups,
      extensions: { ...offeredExtensions(fleet.servers, viewFor(caller)), ...ownExtensions },
    }),
    // Each key may see other things, so no list may be in a shared cache.
    limitHints: (hints = { ttlMs: 0, cacheScope: "private" }) =>
      isOpen(config) ? hints : { ...hints, cacheScope: "private" },
    describeList: (part, view) => {
      const sources = {
        servers: fleet.servers,
        disabled: config.disabled,
        naming,
        clock,
        pins,
        describeFailure,
      };
      return hideInData(noteList(part, view, sources), hide);
    },
    toMissing: (what, id, round) =>
      isParkedState(round?.state)
        ? abandonedCall(round.state.server, notParked)
        : new NotFoundError(what, id),
  });
}

/** The extensions that a gateway has itself, whatever its servers have. */
const ownExtensions: Extensions = {
  [extensionIds.tasks]: {},
  [extensionIds.skills]: { directoryRead: true },
};

function profileNames({ rename, pin }: ProfileConfig): Layer {
  return (inner) => withProfile(inner, { rename, pin });
}

function ownNames(server: string, viewFor: (caller: CallerInfo) => View, { runtime }: StackParts): Layer {
  const uris = (): UriNames | undefined => runtime.catalog.snapshotFor(anyone).uris.get(server);
  return (inner) => withOwnNames(inner, viewFor, uris);
}

/** Servers and profiles as groups. A profile is a group at the entrance of all servers only, where its tools have the names of the gateway. */
function groups(entrance: Entrance, viewFor: (caller: CallerInfo) => View, parts: StackParts): Layer | false {
  const { config, policy } = parts;
  const rename = entrance.kind === "profile" ? entrance.profile.rename : {};
  const publicNames = invert(rename);
  const hasFrom =
    (viewOf: (caller: CallerInfo) => View, server?: string): ServedGroup["has"] =>
    (part, key, context) => {
      const view = viewOf(context);
      if (part === "resources") {
        const owner = view.resourceOwner(key)?.server;
        return owner !== undefined && (server ?? owner) === owner;
      }
      const claim =
        part === "tools" ? view.toolClaims.get(publicNames.get(key) ?? key) : view.promptClaims.get(key);
      return claim !== undefined && (server ?? claim.server) === claim.server;
    };
  const describe = <T extends { readonly name: string; readonly group: string | undefined }>(
    each: readonly T[],
    has: (name: string) => ServedGroup["has"],
  ): readonly ServedGroup[] =>
    each.flatMap(({ name, group }) =>
      group === undefined ? [] : [{ name, description: group, has: has(name) }],
    );
  const served =
    entrance.kind === "server"
      ? []
      : [
          ...describe(config.servers, (name) => hasFrom(viewFor, name)),
          ...(entrance.kind === "all"
            ? describe(config.profiles, (name) => hasFrom(policy.viewAt(name)))
            : []),
        ];
  return (inner) => withServedGroups(inner, { served, viewFor, own: middleware(parts) });
}

/** Cuts long results. The cap that a profile sets for a tool takes precedence over that of the tool's server. */
function caps(entrance: Entrance, parts: StackParts): Layer | false {
  const maxResultTokens = capsOf(entrance, parts);
  if (maxResultTokens === undefined) return false;
  const { results } = parts;
  const profile = entrance.name === undefined ? {} : { profile: entrance.name };
  return (inner) => withBudget(inner, { maxResultTokens, ...results, ...profile, own: middleware(parts) });
}

/** The cap of each tool by the name that it has here; undefined where no tool has one. */
function capsOf(entrance: Entrance, { config, runtime }: StackParts): CapOf | undefined {
  const { maxResultTokens, rename = {} } = entrance.kind === "profile" ? entrance.profile : {};
  const ofProfile = maxResultTokens === undefined ? undefined : toCapOf(maxResultTokens);
  const ofServers = new Map(
    config.servers.flatMap(({ name, maxResultTokens: caps }) =>
      caps === undefined ? [] : [[name, toCapOf(caps)] as const],
    ),
  );
  if (ofProfile === undefined && ofServers.size === 0) return undefined;
  const publicNames = invert(rename);
  return (name) => {
    const tool = publicNames.get(name) ?? name;
    const cap = ofProfile?.(tool);
    if (cap !== undefined) return cap;
    const claim = runtime.catalog.viewFor(anyone, allowAll).toolClaims.get(tool);
    return claim && ofServers.get(claim.server)?.(claim.ownName);
  };
}

/** Finds tools by a search, for models that cannot hold all of them. */
function search(profile: ProfileConfig, viewFor: (caller: CallerInfo) => View, parts: StackParts): Layer {
  const { pin, tools, budget } = profile;
  const { servers } = parts.config;
  const trusted = new Set(servers.filter(({ trustHints }) => trustHints).map(({ name }) => name));
  return (inner) =>
    withSearch(inner, {
      tools: tools === "auto" ? "auto" : "search",
      budget,
      pin: capsOf({ kind: "profile", name: profile.name, profile }, parts) ? [...pin, readResultName] : pin,
      serverOf: createServerOf(profile, parts),
      serversFor: (caller) => {
        const view = viewFor(caller);
        return servers.filter((each) => isKnownIn(view, each, parts.naming)).map(({ name }) => name);
      },
      trustsHints: (server) => trusted.has(server),
      hasReadTool: () => trusted.size > 0,
      own: middleware(parts),
    });
}

/** Finds the server of a tool by the catalog of the caller: servers may list other tools for each. Tools of no server are the gateway's. */
function createServerOf({ rename }: ProfileConfig, { runtime }: StackParts): ServerOf {
  const publicNames = invert(rename);
  return ({ name }, caller) => {
    const listed = publicNames.get(name) ?? name;
    const claim = runtime.catalog.viewFor(caller, allowAll).toolClaims.get(listed);
    if (claim !== undefined) return { server: claim.server, ownName: name === listed ? claim.ownName : name };
    return { server: "gateway", ownName: name };
  };
}

function invert(names: { readonly [name: string]: string }): ReadonlyMap<string, string> {
  return new Map(Object.entries(names).map(([old, name]) => [name, old]));
}
