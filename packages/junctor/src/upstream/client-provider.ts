import type { Client } from "@junctor/client";
import type { Provider } from "@junctor/core/provider";

/** A client as a provider. */
export function toProvider(client: Client): Provider {
  return client;
}
