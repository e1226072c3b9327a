import type { Client } from "@junctor/client";
import { fromFacets, type Provider } from "@junctor/core/provider";

const providers = new WeakMap<Client, Provider>();

/** A client as a provider; the same one each time. */
export function toProvider(client: Client): Provider {
  let provider = providers.get(client);
  if (provider === undefined) providers.set(client, (provider = fromFacets(client)));
  return provider;
}
