import type { Cluster } from "../cluster/cluster.ts";
import { createLineServer } from "../cluster/line-server.ts";
import type { Server } from "../mcp/server.ts";
import type { Implementation } from "../mcp/types.ts";
import type { ChangeSource } from "../tools/changes.ts";
import type { Provider } from "../tools/provider.ts";
import type { Fleet } from "./fleet.ts";
import type { GatewayLog } from "./log.ts";
import type { Upstream } from "./upstream/upstream.ts";

interface JoinedParts {
  readonly fleet: Fleet;
  readonly changes: ChangeSource;
  readonly info: Implementation;
  readonly log: GatewayLog;
}

/** Makes the servers of a gateway known to its other replicas. */
export function joinReplicas(cluster: Cluster, { fleet, changes, info, log }: JoinedParts): void {
  const servers = new WeakMap<Upstream, Server>();
  const onError = (error: unknown, method: string): void =>
    log.error({ method, error: String(error) }, "serving another replica failed");
  cluster.trunk.serve({
    serverNamed: (name) => {
      const upstream = fleet.upstreams.get(name);
      if (upstream === undefined) return undefined;
      let server = servers.get(upstream);
      if (server === undefined)
        servers.set(upstream, (server = createLineServer(toLineProvider(upstream, changes), info, onError)));
      return server;
    },
  });
}

/** A server with the changes that are its own: the composition of all servers reports those of all. */
function toLineProvider(upstream: Upstream, changes: ChangeSource): Provider {
  const { resources, prompts, completion, tasks, skills, methods } = upstream;
  return {
    listTools: (context) => upstream.listTools(context),
    callTool: (call, context) => upstream.callTool(call, context),
    resources,
    prompts,
    completion,
    tasks,
    skills,
    methods,
    get cacheHints() {
      return upstream.cacheHints;
    },
    onChange: (listener) =>
      changes.onChange((change) => {
        if (change.origin === upstream.name) listener(change);
      }),
    mayHear: (change, hearer) => upstream.mayHear(change, hearer),
  };
}
