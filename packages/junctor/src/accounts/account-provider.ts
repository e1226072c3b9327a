import { andThen } from "@junctor/core/async";
import { RawJson } from "@junctor/core/json";
import { methods } from "@junctor/core/mcp";
import {
  type CallerInfo,
  emptyListing,
  mapListings,
  type Outcome,
  type Provider,
} from "@junctor/core/provider";
import { connectTool } from "../catalog/index.ts";
import { offersAll, type Upstream } from "../upstream/index.ts";
import type { AccountGuard } from "./account-guard.ts";
import type { Accounts } from "./accounts.ts";

interface AccountProviderOptions {
  readonly accounts: Accounts;
  readonly guard: AccountGuard;
}

/** The server hears which caller a list is for; nothing of it is kept by others. */
const hints = { ttlMs: 0, cacheScope: "private" } as const;

/** A server as a provider in which each caller reaches the upstream of its own account and no other. */
export function createAccountProvider({ accounts, guard }: AccountProviderOptions): Provider {
  const upstreamOf = (caller: CallerInfo): Upstream | undefined => accounts.find(caller)?.upstream;
  const unkept = mapListings<object>((listing) => listing.with(listing.items, { hints }));
  return {
    // A list is of all servers, so a caller without an account sees none of this one.
    list: (part, context) =>
      andThen(upstreamOf(context)?.list(part, context) ?? emptyListing, (list) => unkept(list) as never),
    call: (operation, context) => {
      const { method, name, round: given } = operation;
      if (method === "tools/call" && name === connectTool)
        return guard.connect(context, given).then((said) => (typeof said === "string" ? toText(said) : said));
      if (methods.get(method)?.asks !== true)
        return guard.use(context, (upstream) => upstream.call(operation, context));
      return guard.ask<Outcome>(context, given, (upstream, round) =>
        upstream.call(round === given ? operation : { ...operation, round }, context),
      );
    },
    watch: (target, context, listener) =>
      guard.use(context, (upstream) => upstream.watch(target, context, listener)),
    offers: () => offersAll,
  };
}

function toText(text: string): Outcome {
  return { kind: "complete", result: RawJson.fromValue({ content: [{ type: "text", text }] }) };
}
