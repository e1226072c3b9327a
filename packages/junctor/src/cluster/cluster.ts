import { randomBytes } from "node:crypto";
import type { Client } from "@junctor/client";
import { type Clock, systemClock } from "@junctor/core/async";
import { ConnectError } from "@junctor/core/errors";
import { packageVersion } from "@junctor/core/options";
import { Homes } from "./homes.ts";
import { joinCluster, type Membership } from "./membership.ts";
import { ServerPlacement } from "./placement.ts";
import type { ClusterStore } from "./store.ts";
import { listenTrunk, toTrunkKeys, type Trunk, type TrunkListen } from "./trunk.ts";

/** This process among the replicas of one gateway. Disposing it leaves them, and closes the store. */
export interface Cluster extends AsyncDisposable {
  readonly store: ClusterStore;
  readonly membership: Membership;
  readonly trunk: Trunk;
  readonly homes: Homes;
  readonly placement: ServerPlacement;
  /** The tokens of limits that all replicas share. */
  readonly tokens: { readonly take: ClusterStore["take"]; replicas(): number };
  /** A client of a server at another replica; undefined when that replica is gone. It is kept for later calls. */
  clientAt(replica: string, server: string): Promise<Client | undefined>;
}

/** Joins the replicas that share a store. */
export async function openCluster(options: {
  readonly store: ClusterStore;
  readonly listen: TrunkListen;
  /** The secrets that all replicas have; the first is used, all are accepted. */
  readonly secrets: readonly string[];
  readonly clock?: Clock;
  readonly onWarning: (text: string, error?: unknown) => void;
}): Promise<Cluster> {
  const { store, listen, secrets, onWarning, clock = systemClock } = options;
  const id = randomBytes(6).toString("hex");
  const trunk = await listenTrunk({ listen, keys: toTrunkKeys(secrets), id, onWarning });
  const { address } = trunk;
  const membership = await joinCluster({ store, address, clock, id, version: packageVersion, onWarning });
  const placement = new ServerPlacement({ membership, trunk, clock });
  const clients = new Map<string, Promise<Client>>();
  const stopLooking = lookForGone(membership, trunk, clock);
  return {
    store,
    membership,
    trunk,
    homes: new Homes({ membership, store, trunk, onWarning, clock }),
    placement,
    tokens: { take: store.take, replicas: () => membership.others.length + 1 },
    clientAt: async (id, server) => {
      const replica = await membership.find(id).catch((error: unknown) => {
        throw new ConnectError(server, "the store cannot be asked which replica has it", { cause: error });
      });
      if (replica === undefined) return undefined;
      const key = `${id} ${server}`;
      const forget = (): void => void clients.delete(key);
      const known = clients.get(key);
      if (known !== undefined) return known;
      const relays = { capabilities: {}, server };
      const opening = placement.openConnection(replica, server, {
        relays,
        reconnects: false,
        validate: false,
        onLost: forget,
      });
      clients.set(key, opening);
      opening.catch(forget);
      return opening;
    },
    [Symbol.asyncDispose]: async () => {
      stopLooking();
      await membership[Symbol.asyncDispose]();
      await trunk[Symbol.asyncDispose]();
      const open = await Promise.allSettled(clients.values());
      const opened = open.filter((client) => client.status === "fulfilled");
      await Promise.all(opened.map((client) => client.value.close()));
      await store[Symbol.asyncDispose]();
    },
  };
}

const lookMs = 1000;

/** Regularly ends connections to replicas that are gone. Ends none while the store cannot be reached. */
function lookForGone(membership: Membership, trunk: Trunk, clock: Clock): () => void {
  let stop = (): void => {};
  let isStopped = false;
  const look = (): void => {
    if (isStopped) return;
    stop = clock.timer(lookMs, () => {
      void trunk
        .cutGone(async (id) => (await membership.find(id)) === undefined)
        .catch(() => {})
        .then(look);
    });
  };
  look();
  return () => {
    isStopped = true;
    stop();
  };
}
