import type { Clock } from "../async/clock.ts";
import type { Cluster } from "../cluster/cluster.ts";
import { createLineServer } from "../cluster/line-server.ts";
import type { Server } from "../mcp/server.ts";
import type { Implementation } from "../mcp/types.ts";
import { KeptResults, type ResultsElsewhere } from "../surface/results/kept-results.ts";
import { profileOfResults, resultsName } from "../surface/results/results-elsewhere.ts";
import type { ChangeSource } from "../tools/changes.ts";
import type { Provider } from "../tools/provider.ts";
import type { Fleet } from "./fleet.ts";
import type { GatewayServer } from "./gateway-server.ts";
import type { GatewayLog } from "./log.ts";

interface JoinedParts {
  readonly fleet: Fleet;
  readonly changes: ChangeSource;
  readonly info: Implementation;
  readonly log: GatewayLog;
  readonly kept: KeptResults;
}

/** The rest of long results. Another replica is asked for what it keeps. */
export function createKept(cluster: Cluster | undefined, clock: Clock): KeptResults {
  if (cluster === undefined) return new KeptResults({ clock });
  const { membership, clientAt } = cluster;
  const readerAt: ResultsElsewhere["readerAt"] = (at, profile) => clientAt(at, resultsName(profile));
  return new KeptResults({ clock, elsewhere: { here: membership.id, readerAt } });
}

/** Makes the servers of a gateway known to its other replicas. */
export function joinReplicas(cluster: Cluster, { fleet, changes, info, log, kept }: JoinedParts): void {
  const servers = new WeakMap<object, Server>();
  const onError = (error: unknown, method: string): void =>
    log.error({ method, error: String(error) }, "serving another replica failed");
  cluster.trunk.serve({
    serverNamed: (name) => {
      const profile = profileOfResults(name);
      const found =
        profile === false
          ? (fleet.upstreams.get(name) ?? fleet.perCaller.get(name))
          : kept.readers.get(profile);
      if (found === undefined) return undefined;
      let server = servers.get(found);
      if (server === undefined) {
        const provider = "config" in found ? toLineProvider(found, changes) : found;
        servers.set(found, (server = createLineServer(provider, info, onError)));
      }
      return server;
    },
  });
}

/** A server with the changes that are its own: the composition of all servers reports those of all. */
function toLineProvider({ config: { name }, provider }: GatewayServer, changes: ChangeSource): Provider {
  const { resources, prompts, completion, tasks, skills, methods } = provider;
  return {
    listTools: (context) => provider.listTools(context),
    callTool: (call, context) => provider.callTool(call, context),
    ...(resources && { resources }),
    ...(prompts && { prompts }),
    ...(completion && { completion }),
    ...(tasks && { tasks }),
    ...(skills && { skills }),
    ...(methods && { methods }),
    get cacheHints() {
      return provider.cacheHints;
    },
    onChange: (listener) =>
      changes.onChange((change) => {
        if (change.origin === name) listener(change);
      }),
    mayHear: (change, hearer) => provider.mayHear?.(change, hearer) ?? true,
  };
}
