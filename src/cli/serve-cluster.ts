import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sleep, systemClock } from "../async/clock.ts";
import { type Cluster, openCluster } from "../cluster/cluster.ts";
import type { ClusterStore } from "../cluster/store.ts";
import type { TrunkListen } from "../cluster/trunk.ts";
import type { GatewayConfig } from "../gateway/config/config.ts";
import type { RunningGateway } from "../gateway/running-gateway.ts";
import type { HttpListener } from "../transports/http/server/node.ts";

interface ReplicaOptions {
  readonly config: GatewayConfig;
  /** The secrets that seal what callers carry; all replicas have them. */
  readonly secrets: readonly string[];
  /** The facts that the workers of one machine share; instead of the store that the config names. */
  readonly store?: ClusterStore | undefined;
  readonly onWarning: (text: string) => void;
}

/** Joins the other processes that serve the same config; undefined where there are none. Disposing it leaves them. */
export async function openReplica({
  config,
  store,
  ...options
}: ReplicaOptions): Promise<Cluster | undefined> {
  if (store === undefined) return undefined;
  const trunk: TrunkListen | undefined = undefined;
  if (trunk !== undefined) return openCluster({ ...options, store, listen: trunk });
  // Any user of the machine may open a named pipe.
  if (process.platform === "win32")
    return openCluster({ ...options, store, listen: { kind: "tls", host: "127.0.0.1", port: 0 } });
  // Made with mode 0700: only this user can enter it.
  const folder = mkdtempSync(join(tmpdir(), "junctor-"));
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  process.once("exit", remove);
  const listen: TrunkListen = { kind: "socket", path: join(folder, "trunk") };
  const cluster = await openCluster({ ...options, store, listen });
  return {
    ...cluster,
    [Symbol.asyncDispose]: async () => {
      await cluster[Symbol.asyncDispose]();
      remove();
      process.off("exit", remove);
    },
  };
}

interface Drained {
  readonly gateway: RunningGateway;
  readonly listener: HttpListener;
  readonly drainMs?: number;
}

/** How often it is looked whether a call still waits. */
const lookMs = 100;

/**
 * Takes no new calls, and waits for those that wait for an answer of their caller: `drainMs` at most. The other replicas take all that
 * is new, and pass on what belongs to this one.
 */
export async function drainReplica({ membership }: Cluster, drained: Drained): Promise<void> {
  const { gateway, listener, drainMs = 10 * 60_000 } = drained;
  listener.drain();
  await membership.drain().catch(() => {}); // The others notice when a connection to us fails.
  const until = systemClock.now() + drainMs;
  const isAwaited = (): boolean =>
    gateway.controls.parked().length > 0 ||
    listener.inspect().sessions.some(({ questions }) => questions > 0);
  while (isAwaited() && systemClock.now() < until) await sleep(lookMs, systemClock);
}
