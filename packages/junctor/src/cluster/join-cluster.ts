import { randomBytes } from "node:crypto";
import { type Clock, sleep, systemClock, timedOut, waitFor } from "@junctor/core/async";
import { StoreError } from "@junctor/core/errors";
import type { HeldLease, Membership, Replica, TrunkAddress } from "./membership.ts";
import { type ClusterStore, storeBounds } from "./store.ts";

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

interface RenewalsOptions {
  readonly clock: Clock;
  /** Makes one renewal. */
  readonly renew: (startedAt: number) => Promise<void>;
  /** How long after the start of one the next may start. */
  readonly gapMs: number;
  /** How long after the start of one that succeeded the next starts by itself, and after the end of one that failed. */
  readonly everyMs: number;
  readonly retryMs: number;
}

/** Renewals that come one after the other. */
interface Renewals {
  /** Resolves after a renewal that started later than this call. All who wait share it. */
  next(): Promise<void>;
  /** Makes one after the other from now on, until it is stopped. */
  start(): void;
  /** Resolves when none is underway. */
  stop(): Promise<void>;
}

function createRenewals({ clock, renew, gapMs, everyMs, retryMs }: RenewalsOptions): Renewals {
  let startedAt = -Infinity;
  let isStopped = false;
  let underway: Promise<void> | undefined;
  let waiting: Promise<void> | undefined;
  let stopTimer = (): void => {};

  const run = async (): Promise<void> => {
    await underway?.catch(() => {});
    const waitMs = startedAt + gapMs - clock.now();
    if (waitMs > 0) await sleep(waitMs, clock);
    waiting = undefined;
    startedAt = clock.now();
    underway = renew(startedAt).finally(() => (underway = undefined));
    await underway;
  };
  const next = (): Promise<void> => (waiting ??= run());
  const again = (ms: number): void => {
    if (isStopped) return;
    stopTimer = clock.timer(ms, () => {
      next().then(
        () => again(Math.max(1, startedAt + everyMs - clock.now())),
        () => again(retryMs),
      );
    });
  };
  return {
    next,
    start: () => again(everyMs),
    stop: async () => {
      isStopped = true;
      stopTimer();
      await underway?.catch(() => {});
    },
  };
}

/**
 * The version of the protocol between replicas: facts in the store, and the trunk. A change that a replica of the version before
 * would misunderstand adds one. Replicas whose versions differ by one work together; further members of facts are ignored.
 */
const language = 1;

/** The other replicas, as they were at the last renewal. */
interface KnownReplicas {
  readonly all: readonly Replica[];
  get(id: string): Replica | undefined;
  /** Takes the facts of all replicas that are registered, this one included. */
  learn(registered: ReadonlyMap<string, string>): void;
}

function createKnownReplicas(ownId: string, onWarning: (text: string) => void): KnownReplicas {
  let known: ReadonlyMap<string, Replica> = new Map();
  /** Those that cannot be used: a warning each. */
  let unusable: ReadonlySet<string> = new Set();
  return {
    get all() {
      return [...known.values()];
    },
    get: (id) => known.get(id),
    learn: (registered) => {
      const others = [...registered].filter(([id]) => id !== ownId);
      const parsed = others.map(([id, facts]) => ({ id, replica: parseFacts(id, facts) }));
      const usable = parsed.flatMap(({ id, replica }): [string, Replica][] => {
        if (!("unusable" in replica)) return [[id, replica]];
        if (!unusable.has(id)) onWarning(`replica ${id} cannot be used: ${replica.unusable}`);
        return [];
      });
      known = new Map(usable);
      unusable = new Set(parsed.map(({ id }) => id).filter((id) => !known.has(id)));
    },
  };
}

/** The facts that a replica registers, as text. */
function formatFacts({ address, version, isDraining }: Omit<Replica, "id">): string {
  return JSON.stringify({ language, address, version, draining: isDraining });
}

/** Reads the facts of a replica. Gives the reason when this replica cannot work with it. */
function parseFacts(id: string, text: string): Replica | { readonly unusable: string } {
  let facts: Partial<Record<string, unknown>>;
  try {
    facts = Object(JSON.parse(text)) as typeof facts;
  } catch {
    return { unusable: "its facts are not JSON" };
  }
  const spoken = facts["language"];
  if (typeof spoken !== "number" || Math.abs(spoken - language) > 1)
    return {
      unusable: `it speaks language ${JSON.stringify(spoken)} between replicas, and this one ${language}`,
    };
  const address = parseAddress(Object(facts["address"]) as Partial<Record<string, unknown>>);
  if (!/^[0-9a-f]{12}$/u.test(id)) return { unusable: "its id is not 12 hexadecimal digits" };
  if (address === undefined) return { unusable: "its address is of no known kind" };
  const version = typeof facts["version"] === "string" ? facts["version"] : "unknown";
  return { id, address, version, isDraining: facts["draining"] === true };
}

function parseAddress({
  kind,
  path,
  host,
  port,
}: Partial<Record<string, unknown>>): TrunkAddress | undefined {
  if (kind === "socket" && typeof path === "string") return { kind, path };
  if (kind === "tls" && typeof host === "string" && typeof port === "number") return { kind, host, port };
  return undefined;
}

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

function createHeldLeases(options: HeldLeasesOptions): HeldLeases {
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
async function withTimeout<T>(
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
