import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sleep, systemClock } from "@junctor/core/async";
import { StoreError } from "@junctor/core/errors";
import type { HttpListener } from "@junctor/server";
import {
  type Cluster,
  type ClusterStore,
  connectRedisStore,
  openCluster,
  parseStoreUrl,
  type TrunkConfig,
  type TrunkListen,
} from "../../cluster/index.ts";
import { type GatewayConfig, isAnyAddress } from "../../config/index.ts";
import type { RunningGateway } from "../../gateway/index.ts";
import { givenSecrets } from "../login/index.ts";
import { UsageError } from "../terminal/index.ts";

interface ReplicaOptions {
  readonly config: GatewayConfig;
  /** The secrets that seal what callers carry; all replicas have them. */
  readonly secrets: readonly string[];
  /** The facts that the workers of one machine share; instead of the store that the config names. */
  readonly store?: ClusterStore | undefined;
  readonly worker?: TrunkOwner | undefined;
  readonly env?: NodeJS.ProcessEnv;
  readonly onWarning: (text: string, error?: unknown) => void;
}

/** A worker, which has a trunk of its own. */
interface TrunkOwner {
  /** From 1 on. The ports of trunks follow each other. */
  readonly number: number;
  /** Where the sockets of the trunks are. The primary made it, and removes it. */
  readonly folder: string;
}

/** Joins the other processes that serve the same config; undefined where there are none. Disposing it leaves them. */
export async function openReplica(options: ReplicaOptions): Promise<Cluster | undefined> {
  const { config, env = process.env, secrets, onWarning, worker } = options;
  const settings = readReplicaSettings(config, env);
  assertClusterSecret(settings, env);
  const { store: url, trunk } = settings;
  const store = url === undefined ? options.store : await connectStore({ url, secrets, onWarning });
  if (store === undefined) return undefined;
  const port = trunk && (trunk.port === 0 ? 0 : trunk.port + (worker?.number ?? 1) - 1);
  const own = trunk && port !== undefined ? { ...trunk, port } : undefined;
  const place = openTrunkPlace(own, url !== undefined, worker?.folder);
  const cluster = await openCluster({ store, secrets, onWarning, listen: place.listen });
  return {
    ...cluster,
    [Symbol.asyncDispose]: async () => {
      await cluster[Symbol.asyncDispose]();
      place[Symbol.dispose]();
    },
  };
}

async function connectStore(options: Parameters<typeof connectRedisStore>[0]): Promise<ClusterStore> {
  try {
    return await connectRedisStore(options);
  } catch (error) {
    if (!(error instanceof StoreError) || error.code !== "store.unreachable") throw error;
    const advice = "start it, or correct JUNCTOR_STORE or junctor.store";
    throw new StoreError(error.code, `${error.message}; ${advice}`, { cause: error });
  }
}

/** Where the trunk of this process listens. Disposing it removes the folder of its socket. */
interface TrunkPlace extends Disposable {
  readonly listen: TrunkListen;
}

/** Replicas with a store may be on several machines. Workers are on this one, where a socket is enough. */
function openTrunkPlace(
  given: TrunkConfig | undefined,
  isShared: boolean,
  shared: string | undefined,
): TrunkPlace {
  if (given !== undefined) return { listen: { kind: "tls", ...given }, [Symbol.dispose]: () => {} };
  // Any user of the machine may open a named pipe.
  if (isShared || process.platform === "win32")
    return { listen: { kind: "tls", host: "127.0.0.1", port: 0 }, [Symbol.dispose]: () => {} };
  const folder = shared ?? makeTrunkFolder();
  const path = join(folder, trunkName(process.pid));
  // The folder of workers is removed by the primary, unless that was killed.
  const remove = (): void =>
    rmSync(shared === undefined || !process.connected ? folder : path, { recursive: true, force: true });
  process.once("exit", remove);
  return {
    listen: { kind: "socket", path },
    [Symbol.dispose]: () => {
      remove();
      process.off("exit", remove);
    },
  };
}

/** Made with mode 0700: only this user can enter it. */
export function makeTrunkFolder(): string {
  return mkdtempSync(join(tmpdir(), "junctor-"));
}

/** The name of the socket of a process. */
export function trunkName(pid: number): string {
  return `${pid}.trunk`;
}

/** How often to look whether a call still waits. */
const lookMs = 100;
/** How long calls that other replicas passed on to this one may take: as long as the listener waits for its own calls. */
const callMs = 10_000;

/**
 * Takes no new calls, and waits up to `drainMs` for calls that wait for an answer of their caller. The other replicas take new calls, and
 * pass on what belongs to this one. Then closes the listener, and waits until the servers of this replica have no call.
 */
export async function drainReplica(
  { membership }: Cluster,
  drained: {
    readonly gateway: RunningGateway;
    readonly listener: HttpListener;
    /** How long callers that are away have to come back. */
    readonly drainMs: number;
  },
): Promise<void> {
  const { gateway, listener, drainMs } = drained;
  listener.drain();
  await membership.drain().catch(() => {}); // The others notice when a connection to us fails.
  const until = systemClock.now() + drainMs;
  const isAwaited = (): boolean =>
    gateway.controls.parked().length > 0 ||
    listener.inspect().sessions.some(({ questions }) => questions > 0);
  while (isAwaited() && systemClock.now() < until) await sleep(lookMs, systemClock);
  const callsUntil = systemClock.now() + callMs;
  const closed = listener.close();
  const isBusy = (): boolean => gateway.controls.servers().some(({ inFlight }) => inFlight > 0);
  while (isBusy() && systemClock.now() < callsUntil) await sleep(lookMs, systemClock);
  await closed;
}

/** How this process joins others, by the config and the environment. */
interface ReplicaSettings {
  /** The URL of the engine that replicas share. It may have a password in it. */
  readonly store: string | undefined;
  /** Undefined: on this machine only. */
  readonly trunk: TrunkConfig | undefined;
}

/**
 * Reads `JUNCTOR_STORE` and `JUNCTOR_TRUNK`, which take precedence over the config.
 *
 * @throws UsageError when one of them is wrong
 */
export function readReplicaSettings(
  { store, trunk }: Pick<GatewayConfig, "store" | "trunk">,
  env: NodeJS.ProcessEnv,
): ReplicaSettings {
  const [url = "", place = ""] = [env["JUNCTOR_STORE"]?.trim(), env["JUNCTOR_TRUNK"]?.trim()];
  try {
    if (url !== "") parseStoreUrl(url);
  } catch (error) {
    if (error instanceof StoreError) throw new UsageError(`JUNCTOR_STORE: ${error.message}`);
    throw error;
  }
  return {
    store: url === "" ? store : url,
    trunk: place === "" ? trunk : parseTrunk(place, trunk?.advertise),
  };
}

/**
 * Replicas read each other's tokens, and prove to each other who they are, by one secret. A secret of this machine alone would refuse
 * the callers of every other replica.
 *
 * @throws UsageError when a store is named and `JUNCTOR_SECRET` is not set
 */
export function assertClusterSecret({ store }: ReplicaSettings, env: NodeJS.ProcessEnv): void {
  if (store === undefined || givenSecrets(env).length > 0) return;
  throw new UsageError(
    "a store is named, so there are other replicas: set JUNCTOR_SECRET to the same text for all of them (openssl rand -hex 32 makes one)",
  );
}

function parseTrunk(text: string, advertise: string | undefined): TrunkConfig {
  const parts = /^(?:\[([\da-f:.]+)\]|([\w.-]+)):(\d{1,5})$/iu.exec(text);
  const [host, port] = [parts?.[1] ?? parts?.[2], Number(parts?.[3])];
  if (host === undefined || !(port <= 65_535))
    throw new UsageError(`JUNCTOR_TRUNK needs HOST:PORT, such as 10.0.0.5:7790, not ${JSON.stringify(text)}`);
  if (isAnyAddress(host) && advertise === undefined)
    throw new UsageError(
      `JUNCTOR_TRUNK names no address that other replicas could use: write this machine's instead of ${host}, or "advertise" into junctor.trunk`,
    );
  return { host, port, ...(advertise === undefined ? {} : { advertise }) };
}
