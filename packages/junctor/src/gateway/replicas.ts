import type { Server } from "@junctor/core/mcp";
import type { Change, ChangeSource, Provider } from "@junctor/core/provider";
import { type Cluster, createConnectionServer } from "../cluster/index.ts";
import { profileOfResults } from "../context/index.ts";
import type { Generation } from "./generation.ts";
import type { Runtime } from "./runtime.ts";

/** Makes the servers of a gateway known to its other replicas. */
export function joinReplicas(
  cluster: Cluster,
  { fleet, changes, info, log }: Runtime,
  current: () => Generation,
): void {
  const servers = new WeakMap<object, Server>();
  const onError = (error: unknown, method: string): void =>
    log.error({ method, error: String(error) }, "serving another replica failed");
  cluster.trunk.serve({
    serverNamed: (name) => {
      const profile = profileOfResults(name);
      const found =
        profile === false
          ? (fleet.upstreams.get(name) ?? fleet.perCaller.get(name))
          : current().readers.get(profile);
      if (found === undefined) return undefined;
      let server = servers.get(found);
      if (server === undefined) {
        const provider =
          "config" in found
            ? toConnectionProvider(found.config.name, "provider" in found ? found.provider : found, changes)
            : found;
        servers.set(found, (server = createConnectionServer(provider, info, onError)));
      }
      return server;
    },
  });
}

/** A server with the changes that are its own: the composition of all servers reports those of all. */
function toConnectionProvider(name: string, inner: Provider, changes: ChangeSource<Change>): Provider {
  return {
    list: (part, context) => inner.list(part, context),
    call: (operation, context) => inner.call(operation, context),
    ...(inner.watch === undefined ? {} : { watch: inner.watch.bind(inner) }),
    offers: (caller) => inner.offers(caller),
    onChange: (listener) =>
      changes.onChange((change) => {
        if (change.origin === name) listener(change);
      }),
  };
}
