import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Clock, sleep, systemClock } from "../async/clock.ts";
import { type Cluster, openCluster } from "../cluster/cluster.ts";
import type { ClusterStore } from "../cluster/store.ts";
import type { TrunkListen } from "../cluster/trunk.ts";

interface ReplicaOptions {
  /** The facts that the replicas share. */
  readonly store: ClusterStore;
  /** Where other machines reach this process; without it, only processes of this machine do. */
  readonly trunk?: { readonly host: string; readonly port: number; readonly advertise?: string } | undefined;
  /** The secrets that seal what callers carry; all replicas have them. */
  readonly secrets: readonly string[];
  readonly onWarning: (text: string) => void;
}

/** Joins the other processes that serve the same config. Disposing it leaves them. */
export async function openReplica({ trunk, ...options }: ReplicaOptions): Promise<Cluster> {
  if (trunk !== undefined) return openCluster({ ...options, listen: { kind: "tls", ...trunk } });
  // Any user of the machine may open a named pipe.
  if (process.platform === "win32") {
    const listen: TrunkListen = { kind: "tls", host: "127.0.0.1", port: 0 };
    return openCluster({ ...options, listen });
  }
  // Made with mode 0700: only this user can enter it.
  const folder = mkdtempSync(join(tmpdir(), "junctor-"));
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  process.once("exit", remove);
  const cluster = await openCluster({ ...options, listen: { kind: "socket", path: join(folder, "trunk") } });
  return {
    ...cluster,
    [Symbol.asyncDispose]: async () => {
      await cluster[Symbol.asyncDispose]();
      remove();
      process.off("exit", remove);
    },
  };
}

interface DrainOptions {
  /** How long callers that are away have to come back. */
  readonly drainMs: number;
  /** How many calls wait for an answer of their caller. */
  readonly waiting: () => number;
  readonly clock?: Clock;
}

/** How often it is looked whether a call still waits. */
const lookMs = 100;

/** Waits, for `drainMs` at most, until no call waits for its caller. Other replicas pass the answers on meanwhile. */
export async function untilAnswered({ drainMs, waiting, clock = systemClock }: DrainOptions): Promise<void> {
  const until = clock.now() + drainMs;
  while (waiting() > 0 && clock.now() < until) await sleep(lookMs, clock);
}
