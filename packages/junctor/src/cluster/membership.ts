import { randomBytes } from "node:crypto";
import { type Clock, sleep, systemClock, timedOut, waitFor } from "@junctor/core/async";
import { StoreError } from "@junctor/core/errors";
import { type ClusterStore, storeBounds } from "./store.ts";

/** Where the trunk of a replica listens: a Unix socket or named pipe on one machine, TLS with a shared key between machines. */
export type TrunkAddress =
  | { readonly kind: "socket"; readonly path: string }
  | { readonly kind: "tls"; readonly host: string; readonly port: number };

/** A replica that is alive, as far as is known. */
export interface Replica {
  /** 12 hexadecimal digits, random, made at its start and never used again. */
  readonly id: string;
  readonly address: TrunkAddress;
  readonly version: string;
  /** It takes no new calls, and stays for those that belong to it. */
  readonly isDraining: boolean;
}

/** A lease that this replica holds. It is renewed until it is given back. */
export interface HeldLease {
  /** Whether this replica still has it, by the clock. Read it before each thing that is done because of the lease. */
  readonly isHeld: boolean;
  /** Gives it back. When the store cannot be reached, the lease ends by itself within 10 s. */
  release(): Promise<void>;
}

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
/** How long a replica counts itself in without a renewal. The rest of the 10 s is for clocks that differ, and to end things. */
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
  const membership = new Membership(options);
  await membership.register();
  return membership;
}

/**
 * One process as a member of a gateway that runs in several. It is registered for 10 s at a time and renews that, and all its
 * leases, every 3 s. After 7 s without a renewal, by its own monotonic clock, it counts itself out: it owns nothing any more.
 *
 * A process may be stopped at any point and go on much later. So read `isIn`, or `isHeld` of a lease, before each thing that is
 * done because of a lease: it compares the clock, and if the time is over, every `onLost` has run when it is false.
 */
export class Membership implements AsyncDisposable {
  readonly id: string;
  readonly #store: ClusterStore;
  readonly #address: TrunkAddress;
  readonly #version: string;
  readonly #clock: Clock;
  readonly #onWarning: (text: string, error?: unknown) => void;
  readonly #listeners = new Set<(isIn: boolean) => void>();
  readonly #others: KnownReplicas;
  readonly #leases: HeldLeases;
  readonly #renewals: Renewals;
  /** Brought up to date by {@link isIn}. */
  #isIn = false;
  #isDraining = false;
  #isWarned = false;
  #isClosed = false;
  /** When the last renewal that succeeded started. */
  #registeredAt = 0;
  /** When the store was reached again after it could not be. Others may not have registered again until later. */
  #backAt = -Infinity;
  #stopTimer = (): void => {};

  constructor({ store, address, version, id, clock = systemClock, onWarning }: JoinOptions) {
    this.id = id ?? randomBytes(6).toString("hex");
    this.#store = store;
    this.#address = address;
    this.#version = version;
    this.#clock = clock;
    this.#onWarning = (text, error) => onWarning?.(text, error);
    this.#others = new KnownReplicas(this.id, this.#onWarning);
    this.#leases = new HeldLeases({
      store,
      holder: this.id,
      clock,
      isIn: () => this.isIn,
      onHeld: () => this.#watchTime(),
      onWarning: this.#onWarning,
    });
    this.#renewals = new Renewals(clock, (startedAt) => this.#renew(startedAt));
  }

  /** Registers this replica, in place of one that ended and had its address, and goes on to renew the registration. */
  async register(): Promise<void> {
    await this.#renewals.next();
    const dead = this.others.filter((other) => isPredecessor(other, this.#address));
    if (dead.length > 0) {
      // If the store fails here, their registrations run out.
      await Promise.allSettled(dead.map((other) => this.#store.unregister(other.id)));
      await this.#renewals.next().catch(() => {});
    }
    this.#renewals.start();
  }

  /** Whether this replica counts itself in. */
  get isIn(): boolean {
    if (this.#isIn && this.#clock.now() - this.#provenAt >= inMs) this.#setIn(false);
    return this.#isIn;
  }

  /** The other replicas, as they were at the last renewal. */
  get others(): readonly Replica[] {
    return this.#others.all;
  }

  /** A replica by id. Asks the store when it is not known here. Undefined when it is not alive. Rejects when the store cannot be asked. */
  async find(id: string): Promise<Replica | undefined> {
    if (id === this.id) return this.#self();
    const known = this.#others.get(id);
    return known !== undefined || !/^[0-9a-f]{12}$/u.test(id) ? known : this.findAgain(id);
  }

  /** The same, as the store has it at this moment: for a replica that could not be reached. */
  async findAgain(id: string): Promise<Replica | undefined> {
    await this.#renewals.next();
    const found = this.#others.get(id);
    const isComplete = this.#clock.now() - this.#backAt >= ttlMs && this.#store.isYoung?.(ttlMs) !== true;
    if (found !== undefined || isComplete) return found;
    const text = "The store was away, and other replicas may not have registered again";
    throw new StoreError("store.starting", text);
  }

  /**
   * Takes a lease, or says who has it. `onLost` is called once if it is lost before it is given back: another replica has it, or
   * may have it soon because this one is out. A lease that this process holds already has this replica as its holder.
   *
   * @throws StoreError when the store cannot be reached, when this replica is out, or when the engine has just started
   */
  hold(key: string, onLost: () => void): Promise<HeldLease | { readonly holder: string }> {
    return this.#leases.hold(key, onLost);
  }

  /** Calls back when this replica is out (false) and when it is in again (true). */
  onIn(listener: (isIn: boolean) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Tells the others, by a renewal at once, that this replica takes no new calls. */
  async drain(): Promise<void> {
    this.#isDraining = true;
    // A failure was reported already, and the next renewal tells the others.
    await this.#renewals.next().catch(() => {});
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#stopTimer();
    const left = this.#renewals
      .stop()
      .then(() => Promise.allSettled([this.#store.unregister(this.id), this.#leases.releaseAll()]));
    await waitFor(left, { ms: leaveMs, clock: this.#clock });
    this.#isIn = false;
  }

  get #provenAt(): number {
    return Math.min(this.#registeredAt, this.#leases.provenAt);
  }

  #self(): Replica {
    const isDraining = this.#isDraining;
    return { id: this.id, address: this.#address, version: this.#version, isDraining };
  }

  #setIn(isIn: boolean): void {
    this.#isIn = isIn;
    if (!isIn) this.#leases.loseAll();
    for (const listener of this.#listeners) listener(isIn);
  }

  /** Reads `isIn` at the moment when it turns false, so that leases are lost in time. */
  #watchTime(): void {
    this.#stopTimer();
    if (!this.isIn || this.#isClosed) return;
    const leftMs = Math.ceil(this.#provenAt + inMs - this.#clock.now());
    this.#stopTimer = this.#clock.timer(Math.max(1, leftMs), () => this.#watchTime());
  }

  async #renew(startedAt: number): Promise<void> {
    if (this.#isClosed) throw new StoreError("store.unreachable", "This replica has left");
    const clock = this.#clock;
    const operations = Promise.all([
      this.#store.register(this.id, formatFacts(this.#self()), ttlMs),
      this.#leases.renew(startedAt),
    ]);
    try {
      const [registered, applyRenewal] = await withTimeout(operations, clock);
      // This comes first: the process may have been suspended meanwhile, and its leases may be another's.
      const wasIn = this.isIn;
      if (clock.now() - startedAt >= inMs)
        throw new StoreError("store.unreachable", "The answer of the store came too late");
      this.#others.learn(registered);
      this.#registeredAt = startedAt;
      applyRenewal();
      if (!wasIn && !this.#isClosed) this.#setIn(true);
      this.#watchTime();
      if (this.#isWarned) {
        this.#onWarning("the store is reached again");
        this.#backAt = clock.now();
      }
      this.#isWarned = false;
    } catch (error) {
      if (!this.#isWarned) this.#onWarning("the store cannot be reached", error);
      this.#isWarned = true;
      throw error;
    }
  }
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

/** Makes renewals one after the other. */
class Renewals {
  readonly #clock: Clock;
  /** Makes one renewal. */
  readonly #renew: (startedAt: number) => Promise<void>;
  #startedAt = -Infinity;
  #isStopped = false;
  #underway: Promise<void> | undefined;
  #waiting: Promise<void> | undefined;
  #stopTimer = (): void => {};

  constructor(clock: Clock, renew: (startedAt: number) => Promise<void>) {
    this.#clock = clock;
    this.#renew = renew;
  }

  /** Resolves after a renewal that started later than this call. All that wait share it. */
  next(): Promise<void> {
    return (this.#waiting ??= this.#run());
  }

  /** Renews regularly from now on, until it is stopped. */
  start(): void {
    this.#repeat(renewMs);
  }

  /** Resolves when no renewal is underway. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#stopTimer();
    await this.#underway?.catch(() => {});
  }

  async #run(): Promise<void> {
    await this.#underway?.catch(() => {});
    const waitMs = this.#startedAt + lookUpMs - this.#clock.now();
    if (waitMs > 0) await sleep(waitMs, this.#clock);
    this.#waiting = undefined;
    this.#startedAt = this.#clock.now();
    this.#underway = this.#renew(this.#startedAt).finally(() => (this.#underway = undefined));
    await this.#underway;
  }

  #repeat(ms: number): void {
    if (this.#isStopped) return;
    this.#stopTimer = this.#clock.timer(ms, () => {
      this.next().then(
        () => this.#repeat(Math.max(1, this.#startedAt + renewMs - this.#clock.now())),
        () => this.#repeat(retryMs),
      );
    });
  }
}

/**
 * The version of the protocol between replicas: facts in the store, and the trunk. Raise it for a change that a replica of the previous
 * version would misunderstand. Replicas whose versions differ by one work together; further members of facts are ignored.
 */
const language = 1;

/** The other replicas, as they were at the last renewal. */
class KnownReplicas {
  readonly #ownId: string;
  readonly #onWarning: (text: string) => void;
  #known: ReadonlyMap<string, Replica> = new Map();
  /** The replicas that cannot be used: one warning for each. */
  #unusable: ReadonlySet<string> = new Set();

  constructor(ownId: string, onWarning: (text: string) => void) {
    this.#ownId = ownId;
    this.#onWarning = onWarning;
  }

  get all(): readonly Replica[] {
    return [...this.#known.values()];
  }

  get(id: string): Replica | undefined {
    return this.#known.get(id);
  }

  /** Takes the facts of all replicas that are registered, this one included. */
  learn(registered: ReadonlyMap<string, string>): void {
    const others = [...registered].filter(([id]) => id !== this.#ownId);
    const parsed = others.map(([id, facts]) => ({ id, replica: parseFacts(id, facts) }));
    const usable = parsed.flatMap(({ id, replica }): [string, Replica][] => {
      if (!("unusable" in replica)) return [[id, replica]];
      if (!this.#unusable.has(id)) this.#onWarning(`replica ${id} cannot be used: ${replica.unusable}`);
      return [];
    });
    this.#known = new Map(usable);
    this.#unusable = new Set(parsed.map(({ id }) => id).filter((id) => !this.#known.has(id)));
  }
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
  /** Whether this replica counts itself in, by the clock. */
  readonly isIn: () => boolean;
  /** Called when a lease was taken: it may now be the one whose time runs out first. */
  readonly onHeld: () => void;
  readonly onWarning: (text: string, error?: unknown) => void;
}

interface OwnLease {
  readonly key: string;
  readonly onLost: () => void;
  /** When the last operation started that proved that this replica has it. */
  provenAt: number;
}

/** The most leases that one process holds at the same time. */
const maxLeases = 65_536;

/** The leases of this replica. */
class HeldLeases {
  readonly #options: HeldLeasesOptions;
  readonly #leases = new Map<string, OwnLease>();
  readonly #inTurn = createTurns();
  /** By key, until when a release that failed may still reach the engine, and would take away what was claimed since. */
  readonly #unsure = new Map<string, number>();
  #provenAt = Infinity;

  constructor(options: HeldLeasesOptions) {
    this.#options = options;
  }

  /** When the oldest proof of any lease was made; later than any time when there is no lease. */
  get provenAt(): number {
    return this.#provenAt;
  }

  hold(key: string, onLost: () => void): Promise<HeldLease | { readonly holder: string }> {
    const { store, holder, clock, onHeld } = this.#options;
    return this.#inTurn(key, async () => {
      if (this.#leases.has(key)) return { holder };
      this.#assertCanHold(key);
      const startedAt = clock.now();
      const current = await withTimeout(store.claim(key, holder, ttlMs), clock);
      this.#assertIn();
      if (current !== holder) return { holder: current };
      const lease: OwnLease = { key, onLost, provenAt: startedAt };
      this.#leases.set(key, lease);
      this.#provenAt = Math.min(this.#provenAt, startedAt);
      onHeld();
      // The claim may have taken so long that it proves nothing any more.
      this.#assertIn();
      return this.#lend(lease);
    });
  }

  /** Renews all leases. Resolves with a function that applies the result, if it is not too late for that. */
  async renew(startedAt: number): Promise<() => void> {
    const { store, holder, clock } = this.#options;
    const renewing = [...this.#leases.values()];
    const parts: Promise<readonly boolean[]>[] = [];
    for (let from = 0; from < renewing.length; from += storeBounds.renewed) {
      const keys = renewing.slice(from, from + storeBounds.renewed).map(({ key }) => key);
      parts.push(store.renew(keys, holder, ttlMs));
    }
    const isKept = (await Promise.all(parts)).flat();
    return () => {
      for (const [index, lease] of renewing.entries()) {
        if (this.#leases.get(lease.key) !== lease) continue;
        if (isKept[index] === true) lease.provenAt = startedAt;
        else this.#lose(lease);
      }
      this.#findOldest();
      for (const [key, until] of this.#unsure) if (until <= clock.now()) this.#unsure.delete(key);
    };
  }

  /** This replica is out. */
  loseAll(): void {
    for (const lease of this.#leases.values()) this.#lose(lease);
    this.#findOldest();
  }

  async releaseAll(): Promise<void> {
    await Promise.all([...this.#leases.values()].map((lease) => this.#release(lease)));
  }

  #findOldest(): void {
    this.#provenAt = Infinity;
    for (const lease of this.#leases.values()) this.#provenAt = Math.min(this.#provenAt, lease.provenAt);
  }

  #assertIn(): void {
    if (this.#options.isIn()) return;
    const text = "This replica has not reached the store for 7 s, and owns nothing until it does";
    throw new StoreError("store.unreachable", text);
  }

  #assertCanHold(key: string): void {
    this.#assertIn();
    if (this.#leases.size >= maxLeases)
      throw new StoreError("store.full", `This replica holds ${maxLeases} leases, which is the most`);
    if ((this.#unsure.get(key) ?? 0) > this.#options.clock.now()) {
      const text = `Whether ${key} was given back is not known; try again in 10 s`;
      throw new StoreError("store.unreachable", text);
    }
  }

  #lose(lease: OwnLease): void {
    this.#leases.delete(lease.key);
    try {
      lease.onLost();
    } catch (error) {
      this.#options.onWarning(`ending what depends on ${lease.key} failed`, error);
    }
  }

  #release(lease: OwnLease): Promise<void> {
    const { store, holder, clock } = this.#options;
    return this.#inTurn(lease.key, async () => {
      if (this.#leases.get(lease.key) !== lease) return;
      this.#leases.delete(lease.key);
      this.#findOldest();
      try {
        await withTimeout(store.release(lease.key, holder), clock);
      } catch {
        this.#unsure.set(lease.key, clock.now() + ttlMs);
      }
    });
  }

  #lend(lease: OwnLease): HeldLease {
    const isHeld = (): boolean => this.#options.isIn() && this.#leases.get(lease.key) === lease;
    return {
      get isHeld() {
        return isHeld();
      },
      release: () => this.#release(lease),
    };
  }
}

/** Settles as the operation does, or rejects after a timeout; whether it was done is not known then. */
async function withTimeout<T>(operation: Promise<T>, clock: Clock): Promise<T> {
  const done = await waitFor(operation, { ms: operationMs, clock });
  if (done !== timedOut) return done;
  throw new StoreError("store.unreachable", `The store did not answer within ${operationMs / 1000} s`);
}

/** Runs work on one key in turn, so that claims and releases of a lease do not overlap. */
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
