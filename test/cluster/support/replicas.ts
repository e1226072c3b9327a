import { mkdtempSync, rmSync } from "node:fs";
import { createServer, request as requestHttp } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { CredentialStore } from "../../../packages/client/src/sign-in/credential.ts";
import { createSeal } from "../../../packages/core/src/mcp/seal.ts";
import { type Cluster, openCluster } from "../../../packages/junctor/src/cluster/cluster.ts";
import { createMemoryClusterStore } from "../../../packages/junctor/src/cluster/memory-store.ts";
import type { ClusterStore } from "../../../packages/junctor/src/cluster/store.ts";
import type { TrunkListen } from "../../../packages/junctor/src/cluster/trunk.ts";
import { parseConfigValue } from "../../../packages/junctor/src/config/parse-config.ts";
import { startGateway } from "../../../packages/junctor/src/gateway/gateway.ts";
import type { RunningGateway } from "../../../packages/junctor/src/gateway/gateway.ts";
import { listenHttp } from "../../../packages/server/src/http/listen-http.ts";
import type { HttpListener } from "../../../packages/server/src/http/node.ts";

const secret = "a secret of all replicas of this test";

/** One replica of a gateway. */
export interface TestReplica extends AsyncDisposable {
  readonly cluster: Cluster;
  readonly gateway: RunningGateway;
  readonly listener: HttpListener;
  readonly url: string;
}

interface ReplicaSettings {
  readonly store: ClusterStore;
  readonly config: object;
  readonly listen: TrunkListen;
  readonly secrets?: readonly string[];
  /** Where callers have accounts of their own: the credentials, which the machines share. */
  readonly credentials?: CredentialStore;
}

export async function startReplica(settings: ReplicaSettings): Promise<TestReplica> {
  const { store, config, listen, secrets = [secret], credentials } = settings;
  const shared: ClusterStore = { ...store, [Symbol.asyncDispose]: () => Promise.resolve() };
  const cluster = await openCluster({ store: shared, listen, secrets, onWarning: () => {} });
  const seal = createSeal({ secrets });
  const parsed = parseConfigValue(config, { file: "config", env: process.env, folder: process.cwd() });
  const accounts = credentials === undefined ? {} : { credentials, accounts: true };
  const gateway = await startGateway(parsed, { cluster, seal, firstListMs: 12_000, ...accounts });
  const { admit: authenticate, mounts } = gateway;
  const listener = await listenHttp(gateway.server, {
    port: 0,
    graceMs: 200,
    seal,
    mounts,
    elsewhere: cluster.homes,
    onWarning: () => {},
    authenticate,
  });
  cluster.trunk.serve({ pipe: listener.pipe });
  await gateway.ready;
  return {
    cluster,
    gateway,
    listener,
    url: listener.url,
    [Symbol.asyncDispose]: async () => {
      await listener.close();
      await gateway.close();
      await cluster[Symbol.asyncDispose]();
    },
  };
}

/** Several replicas of one gateway in this process, over one store, and a balancer before them. */
export interface TestReplicas extends AsyncDisposable {
  readonly store: ClusterStore;
  readonly replicas: readonly TestReplica[];
  /** Passes each request to the next replica. */
  readonly url: string;
}

export async function startReplicas(
  count: number,
  config: object,
  kind = "socket",
  settings: Pick<ReplicaSettings, "credentials"> = {},
): Promise<TestReplicas> {
  const folder = mkdtempSync(join(tmpdir(), "junctor-"));
  const store = createMemoryClusterStore({});
  const replicas: TestReplica[] = [];
  for (let number = 0; number < count; number++) {
    const listen: TrunkListen =
      kind === "socket"
        ? { kind: "socket", path: join(folder, String(number)) }
        : { kind: "tls", host: "127.0.0.1", port: 0 };
    replicas.push(await startReplica({ store, config, listen, ...settings }));
  }
  const balancer = await startBalancer(replicas.map(({ listener }) => listener.port));
  return {
    store,
    replicas,
    url: balancer.url,
    [Symbol.asyncDispose]: async () => {
      await balancer[Symbol.asyncDispose]();
      await Promise.all(replicas.map((replica) => replica[Symbol.asyncDispose]()));
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Passes each request to the next of these ports, whatever it is about. */
export async function startBalancer(
  ports: readonly number[],
): Promise<{ readonly url: string } & AsyncDisposable> {
  let turn = 0;
  const server = createServer((incoming, response) => {
    const port = ports[turn++ % ports.length];
    const { method, url, headers } = incoming;
    const passed = requestHttp(
      { host: "127.0.0.1", port, method, path: url, headers: { ...headers, host: `127.0.0.1:${port}` } },
      (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        response.flushHeaders();
        answer.pipe(response);
        answer.on("error", () => response.destroy());
      },
    );
    passed.on("error", () => response.destroy());
    response.on("close", () => passed.destroy());
    incoming.pipe(passed);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    [Symbol.asyncDispose]: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
