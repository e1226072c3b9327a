import { randomBytes } from "node:crypto";
import { type Clock, systemClock, waitFor } from "@junctor/core/async";
import { StoreError } from "@junctor/core/errors";
import { createHeldLeases, withTimeout } from "./held-leases.ts";
import type { Membership, Replica, TrunkAddress } from "./membership.ts";
import { createRenewals } from "./renewals.ts";
import { createKnownReplicas, formatFacts } from "./replica-facts.ts";
import type { ClusterStore } from "./store.ts";

export interface JoinOptions {
  readonly store: ClusterStore;
  /** Where the trunk of this replica listens. */
  readonly address: TrunkAddress;
  /** The version of the program, for people. */
  readonly version: string;
  readonly clock?: Clock;
  /** 12 hexadecimal digits; random unless given. */
  readonly id?: string;
  readonly onWarning?: (text: string, error?: unknown) => void;
}

/** How long a registration or lease lives without a renewal. */
export const ttlMs = 10_000;
/** How long a replica counts itself in without one. The rest of the ten seconds is for clocks that differ, and to end things. */
const inMs = 7_000;
const renewMs = 3_000;
const retryMs = 1_000;
/** How long one operation may take. */
const operationMs = 5_000;
/** How long leaving may take. Leases that were not given back by then end by themselves. */
const leaveMs = 1_000;
/** Look-ups of unknown ids make at most four renewals a second, however many callers ask. */
const lookUpMs = 250;

/**
 * Makes this process a member: registers it, and keeps it registered until the membership is disposed. The store stays open.
 *
 * @throws StoreError when the first registration fails
 */
export async function joinCluster(options: JoinOptions): Promise<Membership> {
  const { store, address, version, id = randomBytes(6).toString("hex"), clock = systemClock } = options;
  const onWarning = (text: string, error?: unknown): void => options.onWarning?.(text, error);
  const listeners = new Set<(isIn: boolean) => void>();
  const others = createKnownReplicas(id, onWarning);
  /** What follows from the last renewal. `isIn` is brought up to date by {@link readIsIn}. */
  const state = { isIn: false, isDraining: false, registeredAt: 0, isWarned: false, isClosed: false };
  /** When the store was reached again after it could not be. Others may not have registered again until later. */
  let backAt = -Infinity;
  let stopTimer = (): void => {};

  const provenAt = (): number => Math.min(state.registeredAt, leases.provenAt);
  const readIsIn = (): boolean => {
    if (state.isIn && clock.now() - provenAt() >= inMs) setIn(false);
    return state.isIn;
  };
  const setIn = (isIn: boolean): void => {
    state.isIn = isIn;
    if (!isIn) leases.loseAll();
    for (const listener of listeners) listener(isIn);
  };
  /** Has `isIn` read at the moment when it turns false, so that leases are lost in time. */
  const watchTime = (): void => {
    stopTimer();
    if (!readIsIn() || state.isClosed) return;
    const leftMs = Math.ceil(provenAt() + inMs - clock.now());
    stopTimer = clock.timer(Math.max(1, leftMs), watchTime);
  };
  const leases = createHeldLeases({
    store,
    holder: id,
    clock,
    ttlMs,
    operationMs,
    isIn: readIsIn,
    onHeld: watchTime,
    onWarning,
  });
  const self = (): Replica => ({ id, address, version, isDraining: state.isDraining });

  const renew = async (startedAt: number): Promise<void> => {
    if (state.isClosed) throw new StoreError("store.unreachable", "This replica has left");
    const operations = Promise.all([store.register(id, formatFacts(self()), ttlMs), leases.renew(startedAt)]);
    try {
      const [registered, applyRenewal] = await withTimeout(operations, { clock, operationMs });
      // First of all: this process may have been stopped meanwhile, and what it held may be another's.
      const wasIn = readIsIn();
      if (clock.now() - startedAt >= inMs)
        throw new StoreError("store.unreachable", "The answer of the store came too late");
      others.learn(registered);
      state.registeredAt = startedAt;
      applyRenewal();
      if (!wasIn && !state.isClosed) setIn(true);
      watchTime();
      if (state.isWarned) {
        onWarning("the store is reached again");
        backAt = clock.now();
      }
      state.isWarned = false;
    } catch (error) {
      if (!state.isWarned) onWarning("the store cannot be reached", error);
      state.isWarned = true;
      throw error;
    }
  };
  const renewals = createRenewals({ clock, renew, gapMs: lookUpMs, everyMs: renewMs, retryMs });
  const findAnew: Membership["findAnew"] = async (wanted) => {
    await renewals.next();
    const found = others.get(wanted);
    const isComplete = clock.now() - backAt >= ttlMs && store.isYoung?.(ttlMs) !== true;
    if (found !== undefined || isComplete) return found;
    throw new StoreError(
      "store.starting",
      "The store was away, and other replicas may not have registered again",
    );
  };
  await renewals.next();
  const dead = others.all.filter((other) => isPredecessor(other, address));
  if (dead.length > 0) {
    // If the store fails here, their registrations run out.
    await Promise.allSettled(dead.map((other) => store.unregister(other.id)));
    await renewals.next().catch(() => {});
  }
  renewals.start();

  return {
    id,
    get isIn() {
      return readIsIn();
    },
    get others() {
      return others.all;
    },
    find: async (wanted) => {
      if (wanted === id) return self();
      const known = others.get(wanted);
      return known !== undefined || !/^[0-9a-f]{12}$/u.test(wanted) ? known : findAnew(wanted);
    },
    findAnew,
    hold: leases.hold,
    onIn: (listener) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    drain: async () => {
      state.isDraining = true;
      // A failure was reported, and the next renewal tells the others.
      await renewals.next().catch(() => {});
    },
    [Symbol.asyncDispose]: async () => {
      if (state.isClosed) return;
      state.isClosed = true;
      stopTimer();
      const left = renewals
        .stop()
        .then(() => Promise.allSettled([store.unregister(id), leases.releaseAll()]));
      await waitFor(left, { ms: leaveMs, clock });
      state.isIn = false;
    },
  };
}

/**
 * Whether a replica that is registered had the address that this one listens at. It has ended then: a process that is alive, or
 * stopped, keeps its address until it has removed its registration. Paths are not compared, because each machine has its own.
 */
function isPredecessor(other: Replica, own: TrunkAddress): boolean {
  const { address } = other;
  if (address.kind !== "tls" || own.kind !== "tls") return false;
  return address.host === own.host && address.port === own.port;
}
