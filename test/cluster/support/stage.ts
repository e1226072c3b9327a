import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePorts } from "../../support/free-ports.ts";
import { type Balancer, startBalancer } from "./balancer.ts";
import { type Engine, startEngine } from "./engine.ts";
import { createReplica, type Replica } from "./gateway-process.ts";

/** A real engine, gateways in processes of their own, and a balancer without stickiness in front of them. */
export interface Stage extends AsyncDisposable {
  readonly engine: Engine;
  readonly replicas: readonly Replica[];
  readonly balancer: Balancer;
  /** A folder that all of them may use. */
  readonly folder: string;
  /** Writes the config again, which the replicas notice. */
  writeConfig(config: StageConfig): void;
}

/** A config of the gateway. */
export interface StageConfig {
  readonly mcpServers: object;
  readonly junctor?: object;
}

export interface StageOptions {
  readonly replicas?: number;
  readonly env?: { readonly [name: string]: string };
  readonly args?: readonly string[];
}

/** For these tests alone. */
export const secret = "a-secret-of-the-tests-0123456789-abcdefgh";

/** Starts everything. Disposing ends each process by its id, and removes the folder. */
export async function startStage(config: StageConfig, options: StageOptions = {}): Promise<Stage> {
  const folder = mkdtempSync(join(tmpdir(), "junctor-cluster-"));
  const started: AsyncDisposable[] = [];
  const close = async (): Promise<void> => {
    for (const one of started.toReversed()) await one[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  };
  const use = <Started extends AsyncDisposable>(one: Started): Started => {
    started.push(one);
    return one;
  };
  try {
    return { ...(await start({ use, folder, config }, options)), [Symbol.asyncDispose]: close };
  } catch (error) {
    await close();
    throw error;
  }
}

interface StageParts {
  /** Has a thing disposed with the stage. */
  readonly use: <Started extends AsyncDisposable>(one: Started) => Started;
  readonly folder: string;
  readonly config: StageConfig;
}

async function start(
  { use, folder, config }: StageParts,
  { replicas: count = 3, env = {}, args = [] }: StageOptions,
): Promise<Omit<Stage, keyof AsyncDisposable>> {
  const [enginePort = 0, balancerPort = 0, ...ports] = await freePorts(2 + 2 * count);
  const file = join(folder, "mcp.json");
  const writeConfig = (next: StageConfig): void =>
    writeFileSync(file, JSON.stringify(withHosts(next, balancerPort)), { mode: 0o600 });
  writeConfig(config);
  const engine = use(await startEngine(enginePort, folder));
  await engine.untilTrusted();
  const trunkPorts = ports.slice(count);
  const replicas = ports.slice(0, count).map((port, index) =>
    use(
      createReplica({
        name: `r${index}`,
        port,
        trunkPort: trunkPorts[index]!,
        trunkPorts,
        folder,
        config: file,
        env: { JUNCTOR_STORE: engine.url, JUNCTOR_SECRET: secret, ...env },
        args,
      }),
    ),
  );
  await Promise.all(replicas.map((replica) => replica.start()));
  const portsOfReplicas = replicas.map(({ port }) => port);
  const balancer = use(await startBalancer(balancerPort, portsOfReplicas, folder));
  return { engine, replicas, balancer, folder, writeConfig };
}

/** The balancer passes the Host on that its clients know. */
function withHosts({ mcpServers, junctor = {} }: StageConfig, port: number): object {
  const { http = {}, ...rest } = junctor as { readonly http?: { readonly allowedHosts?: readonly string[] } };
  const allowedHosts = [`127.0.0.1:${port}`, `localhost:${port}`, ...(http.allowedHosts ?? [])];
  return { mcpServers, junctor: { admin: false, ...rest, http: { ...http, allowedHosts } } };
}
