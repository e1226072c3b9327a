import { anyone, type Catalog, allowAll } from "@junctor/core/compose";
import { type Provider, withMiddleware } from "@junctor/core/provider";
import type { GatewayConfig, ProfileConfig } from "../config/index.ts";
import { type CapOf, toCapOf, type BudgetOptions, withBudget } from "../context/index.ts";
import type { MiddlewareChain } from "./middleware-chain.ts";

/** The parts of a gateway that caps of results need. What an edit of the config replaces is looked up each time. */
export interface CapParts {
  readonly catalog: Catalog;
  /** The rest of long results. */
  readonly results: Pick<BudgetOptions, "kept" | "elsewhere">;
  config(): GatewayConfig;
  chain(): MiddlewareChain;
}

/**
 * The cap of each tool by its public name; undefined where none has one. What a profile says of a tool counts before what its server's
 * settings say.
 */
export function createCaps(
  { catalog, config }: CapParts,
  ofProfile?: ProfileConfig["maxResultTokens"],
): CapOf | undefined {
  const own = ofProfile === undefined ? undefined : toCapOf(ofProfile);
  const ofServers = new Map(
    config().servers.flatMap(({ name, maxResultTokens: caps }) =>
      caps === undefined ? [] : [[name, toCapOf(caps)] as const],
    ),
  );
  if (ofServers.size === 0) return own;
  return (tool) => {
    const cap = own?.(tool);
    if (cap !== undefined) return cap;
    const claim = catalog.viewFor(anyone, allowAll).toolClaims.get(tool);
    return claim && ofServers.get(claim.server)?.(claim.ownName);
  };
}

/** Cuts results as the settings of servers say; the same provider where they say nothing. */
export function withServerCaps(provider: Provider, parts: CapParts, mount?: string): Provider {
  const capOf = createCaps(parts);
  if (capOf === undefined) return provider;
  const own = (tools: Provider): Provider => withMiddleware(tools, parts.chain().middlewares);
  const profile = mount === undefined ? {} : { profile: mount };
  return withBudget(provider, { maxResultTokens: capOf, ...parts.results, own, ...profile });
}
