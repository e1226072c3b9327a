import { type Catalog, allowAll, type View } from "@junctor/core/compose";
import { latest, withMiddleware, type Change, type CallerInfo, type Provider } from "@junctor/core/provider";
import type { ProfileConfig } from "../config/index.ts";
import {
  type CapOf,
  readResultName,
  withBudget,
  type ServerOf,
  withSearch,
  withProfile,
} from "../context/index.ts";
import { toNaming } from "../policy/index.ts";
import { isKnownIn } from "./list-notes.ts";
import { type CapParts, createCaps } from "./result-caps.ts";

/** The parts of a gateway that a profile's provider is made with. */
interface ProfileParts extends CapParts {
  readonly viewFor: (caller: CallerInfo) => View;
}

/** The provider of a profile. */
export interface ProfileStack {
  readonly provider: Provider;
  /** Follows another config of the profile, or another middleware; callers keep what they have open. */
  use(profile: ProfileConfig): void;
}

/** Puts names, caps and search of a profile around a provider, which has all that the profile may use. */
export function createProfileStack(base: Provider, first: ProfileConfig, parts: ProfileParts): ProfileStack {
  let profile = first;
  let current = build(base, first, parts);
  // The tools of a search stay the same while servers come and go, and with them the prompt that a model has cached.
  const isHidden = ({ part, origin }: Change): boolean =>
    profile.tools === "search" && profile.pin.length === 0 && part === "tools" && origin !== undefined;
  const { onChange } = base;
  return {
    provider: {
      ...latest(() => current),
      onChange: (listener) =>
        onChange?.((change) => {
          if (!isHidden(change)) listener(change);
        }) ?? (() => {}),
    },
    use: (next) => {
      profile = next;
      current = build(base, next, parts);
    },
  };
}

function build(base: Provider, profile: ProfileConfig, parts: ProfileParts): Provider {
  const { name, rename, pin, tools, budget } = profile;
  const own = (tools: Provider): Provider => withMiddleware(tools, parts.chain().middlewares);
  const named = withProfile(base, { rename, pin });
  const byPublicName = createCaps(parts, profile.maxResultTokens);
  const oldNames = new Map(Object.entries(rename).map(([old, name]) => [name, old]));
  const capOf: CapOf | undefined = byPublicName && ((tool) => byPublicName(oldNames.get(tool) ?? tool));
  const capped =
    capOf === undefined
      ? named
      : withBudget(named, { maxResultTokens: capOf, ...parts.results, profile: name, own });
  if (tools === "all") return capped;
  const trusted = (server: string): boolean =>
    parts.config().servers.some((each) => each.name === server && each.trustHints);
  return withSearch(capped, {
    tools,
    budget,
    pin: capOf === undefined ? pin : [...pin, readResultName],
    serverOf: createServerOf(rename, parts.catalog),
    serversFor: (caller) => {
      const view = parts.viewFor(caller);
      const config = parts.config();
      const naming = toNaming(config);
      return config.servers.filter((server) => isKnownIn(view, server, naming)).map((server) => server.name);
    },
    trustsHints: trusted,
    hasReadTool: () => parts.config().servers.some(({ trustHints }) => trustHints),
    own,
  });
}

/** Finds the server of a tool by the catalog of the caller: servers may list other tools for each. Tools of no server are the gateway's. */
function createServerOf(rename: ProfileConfig["rename"], catalog: Catalog): ServerOf {
  const oldNames = new Map(Object.entries(rename).map(([old, name]) => [name, old]));
  return ({ name }, caller) => {
    const listed = oldNames.get(name) ?? name;
    const claim = catalog.viewFor(caller, allowAll).toolClaims.get(listed);
    if (claim !== undefined) return { server: claim.server, ownName: name === listed ? claim.ownName : name };
    return { server: "gateway", ownName: name };
  };
}
