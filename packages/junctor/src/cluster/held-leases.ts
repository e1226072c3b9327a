import { type Clock, timedOut, waitFor } from "@junctor/core/async";
import { StoreError } from "@junctor/core/errors";
import type { HeldLease } from "./membership.ts";
import { storeBounds } from "./store-bounds.ts";
import type { ClusterStore } from "./store.ts";

interface HeldLeasesOptions {
  readonly store: ClusterStore;
  readonly holder: string;
  readonly clock: Clock;
  readonly ttlMs: number;
  readonly operationMs: number;
  /** Whether this replica counts itself in, by the clock. */
  readonly isIn: () => boolean;
  /** A lease was taken whose proof may be the oldest. */
  readonly onHeld: () => void;
  readonly onWarning: (text: string, error?: unknown) => void;
}

/** The leases of this replica. */
interface HeldLeases {
  /** When the oldest proof of any lease was made; later than any time when there is no lease. */
  readonly provenAt: number;
  hold(key: string, onLost: () => void): Promise<HeldLease | { readonly holder: string }>;
  /** Renews all leases. Resolves with a function that applies the result, if it is not too late for that. */
  renew(startedAt: number): Promise<() => void>;
  /** This replica is out. */
  loseAll(): void;
  releaseAll(): Promise<void>;
}

interface OwnLease {
  readonly key: string;
  readonly onLost: () => void;
  /** When the last operation started that proved that this replica has it. */
  provenAt: number;
}

/** Leases and claims that one process may have at the same time. */
const maxLeases = 65_536;

export function createHeldLeases(options: HeldLeasesOptions): HeldLeases {
  const { store, holder, clock, ttlMs, isIn, onHeld, onWarning } = options;
  const leases = new Map<string, OwnLease>();
  const inTurn = createTurns();
  /** By key, until when a release that failed may still reach the engine, and would take away what was claimed since. */
  const unsure = new Map<string, number>();
  let provenAt = Infinity;

  const findOldest = (): void => {
    provenAt = Infinity;
    for (const lease of leases.values()) provenAt = Math.min(provenAt, lease.provenAt);
  };
  const assertIn = (): void => {
    if (isIn()) return;
    const text = "This replica has not reached the store for 7 s, and owns nothing until it does";
    throw new StoreError("store.unreachable", text);
  };
  const assertCanHold = (key: string): void => {
    assertIn();
    if (leases.size >= maxLeases)
      throw new StoreError("store.full", `This replica holds ${maxLeases} leases, which is the most`);
    if ((unsure.get(key) ?? 0) > clock.now())
      throw new StoreError(
        "store.unreachable",
        `Whether ${key} was given back is not known; try again in 10 s`,
      );
  };
  const lose = (lease: OwnLease): void => {
    leases.delete(lease.key);
    try {
      lease.onLost();
    } catch (error) {
      onWarning(`ending what depends on ${lease.key} failed`, error);
    }
  };
  const release = (lease: OwnLease): Promise<void> =>
    inTurn(lease.key, async () => {
      if (leases.get(lease.key) !== lease) return;
      leases.delete(lease.key);
      findOldest();
      try {
        await withTimeout(store.release(lease.key, holder), options);
      } catch {
        unsure.set(lease.key, clock.now() + ttlMs);
      }
    });
  const lend = (lease: OwnLease): HeldLease => ({
    get isHeld() {
      return isIn() && leases.get(lease.key) === lease;
    },
    release: () => release(lease),
  });

  return {
    get provenAt() {
      return provenAt;
    },
    hold: (key, onLost) =>
      inTurn(key, async () => {
        if (leases.has(key)) return { holder };
        assertCanHold(key);
        const startedAt = clock.now();
        const current = await withTimeout(store.claim(key, holder, ttlMs), options);
        assertIn();
        if (current !== holder) return { holder: current };
        const lease: OwnLease = { key, onLost, provenAt: startedAt };
        leases.set(key, lease);
        provenAt = Math.min(provenAt, startedAt);
        onHeld();
        // The claim may have taken so long that it proves nothing any more.
        assertIn();
        return lend(lease);
      }),
    renew: async (startedAt) => {
      const renewing = [...leases.values()];
      const parts: Promise<readonly boolean[]>[] = [];
      for (let from = 0; from < renewing.length; from += storeBounds.renewed) {
        const keys = renewing.slice(from, from + storeBounds.renewed).map(({ key }) => key);
        parts.push(store.renew(keys, holder, ttlMs));
      }
      const isKept = (await Promise.all(parts)).flat();
      return () => {
        for (const [index, lease] of renewing.entries()) {
          if (leases.get(lease.key) !== lease) continue;
          if (isKept[index] === true) lease.provenAt = startedAt;
          else lose(lease);
        }
        findOldest();
        for (const [key, until] of unsure) if (until <= clock.now()) unsure.delete(key);
      };
    },
    loseAll: () => {
      for (const lease of leases.values()) lose(lease);
      findOldest();
    },
    releaseAll: async () => void (await Promise.all([...leases.values()].map(release))),
  };
}

/** Settles as the operation does, or rejects when its time is over; whether it was done is not known then. */
export async function withTimeout<T>(
  operation: Promise<T>,
  { clock, operationMs }: { readonly clock: Clock; readonly operationMs: number },
): Promise<T> {
  const done = await waitFor(operation, { ms: operationMs, clock });
  if (done !== timedOut) return done;
  throw new StoreError("store.unreachable", `The store did not answer within ${operationMs / 1000} s`);
}

/** Has work on one key done in turn: a lease is claimed and given back one after the other. */
function createTurns(): <T>(key: string, work: () => Promise<T>) => Promise<T> {
  const underway = new Map<string, Promise<unknown>>();
  return (key, work) => {
    const before = underway.get(key);
    const turn = before === undefined ? work() : before.then(work, work);
    underway.set(key, turn);
    const end = (): void => {
      if (underway.get(key) === turn) underway.delete(key);
    };
    turn.then(end, end);
    return turn;
  };
}
