import { randomBytes } from "node:crypto";
import { type Clock, sleep, systemClock, timedOut, waitFor } from "../async/clock.ts";
import { StoreError } from "../errors/store-error.ts";
import { HeldLeases } from "./held-leases.ts";
import type { HeldLease, Membership, Replica, TrunkAddress } from "./membership.ts";
import { formatFacts, parseFacts } from "./replica-facts.ts";
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
const ttlMs = 10_000;
/** How long a replica counts itself in without one. The rest of the ten seconds is for clocks that differ, and to end things. */
const inMs = 7_000;
const renewMs = 3_000;
const retryMs = 1_000;
/** How long one operation may take. */
const operationMs = 5_000;
/** Look-ups of unknown ids make at most four renewals a second, however many callers ask. */
const lookUpMs = 250;

/**
 * Makes this process a member: registers it, and keeps it registered until the membership is disposed. The store stays open.
 *
 * @throws StoreError when the first registration fails
 */
export async function joinCluster(options: JoinOptions): Promise<Membership> {
  const member = new Member(options);
  await member.join();
  return member;
}

class Member implements Membership {
  readonly id: string;
  readonly #options: JoinOptions;
  readonly #clock: Clock;
  readonly #leases: HeldLeases;
  readonly #listeners = new Set<(isIn: boolean) => void>();
  /** The state that follows from the last renewal. It is brought up to date by {@link isIn}. */
  readonly #state = {
    isIn: false,
    isDraining: false,
    registeredAt: 0,
    startedAt: -Infinity,
    others: new Map<string, Replica>(),
    isWarned: false,
    isClosed: false,
  };
  /** The renewal underway, and the one that starts after it. */
  #round: Promise<void> | undefined;
  #next: Promise<void> | undefined;
  /** Stops the timers: of the next renewal, and of the moment when this replica is out. */
  readonly #stop = { renewal: () => {}, out: () => {} };
  readonly #warnedOf = new Set<string>();

  constructor(options: JoinOptions) {
    const { id = randomBytes(6).toString("hex"), clock = systemClock } = options;
    this.id = id;
    this.#options = options;
    this.#clock = clock;
    this.#leases = new HeldLeases({
      store: options.store,
      holder: id,
      clock,
      ttlMs,
      operationMs,
      isIn: () => this.isIn,
      onWarning: (text, error) => options.onWarning?.(text, error),
    });
  }

  async join(): Promise<void> {
    await this.#renewed();
    this.#renewAgain(renewMs);
    this.#watchTime();
  }

  get isIn(): boolean {
    const { registeredAt, isIn } = this.#state;
    const provenAt = Math.min(registeredAt, this.#leases.provenAt);
    if (isIn && this.#clock.now() - provenAt >= inMs) this.#setIn(false);
    return this.#state.isIn;
  }

  get others(): readonly Replica[] {
    return [...this.#state.others.values()];
  }

  async find(id: string): Promise<Replica | undefined> {
    const { others } = this.#state;
    if (others.has(id)) return others.get(id);
    if (!/^[0-9a-f]{12}$/u.test(id)) return undefined;
    if (id === this.id) return this.#self();
    return this.findAnew(id);
  }

  async findAnew(id: string): Promise<Replica | undefined> {
    await this.#renewed();
    return this.#state.others.get(id);
  }

  hold(key: string, onLost: () => void): Promise<HeldLease | { readonly holder: string }> {
    return this.#leases.hold(key, onLost, () => this.#watchTime());
  }

  onIn(listener: (isIn: boolean) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  async drain(): Promise<void> {
    this.#state.isDraining = true;
    // A failure was reported, and the next renewal tells the others.
    await this.#renewed().catch(() => {});
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#state.isClosed) return;
    this.#state.isClosed = true;
    this.#stop.renewal();
    this.#stop.out();
    const underway = this.#round ?? Promise.resolve();
    const left = underway.catch(() => {}).then(() => this.#leave());
    await waitFor(left, { ms: retryMs, clock: this.#clock });
    this.#state.isIn = false;
  }

  async #leave(): Promise<void> {
    const left = this.#options.store.unregister(this.id);
    await Promise.allSettled([left, this.#leases.releaseAll()]);
  }

  #self(): Replica {
    const { address, version } = this.#options;
    return { id: this.id, address, version, isDraining: this.#state.isDraining };
  }

  /** Resolves after a renewal that started later than this call. All who wait share it. */
  #renewed(): Promise<void> {
    this.#next ??= (async () => {
      await this.#round?.catch(() => {});
      const waitMs = this.#state.startedAt + lookUpMs - this.#clock.now();
      if (waitMs > 0) await sleep(waitMs, this.#clock);
      this.#next = undefined;
      this.#round = this.#renew().finally(() => (this.#round = undefined));
      await this.#round;
    })();
    return this.#next;
  }

  async #renew(): Promise<void> {
    const { store } = this.#options;
    if (this.#state.isClosed) throw new StoreError("store.unreachable", "This replica has left");
    const startedAt = this.#clock.now();
    this.#state.startedAt = startedAt;
    const operations = Promise.all([
      store.register(this.id, formatFacts(this.#self()), ttlMs),
      this.#leases.renew(startedAt),
    ]);
    try {
      const done = await waitFor(operations, { ms: operationMs, clock: this.#clock });
      // First of all: this process may have been stopped meanwhile, and what it held may be another's.
      const isIn = this.isIn;
      if (done === timedOut || this.#clock.now() - startedAt >= inMs)
        throw new StoreError("store.unreachable", `The store did not answer within ${operationMs / 1000} s`);
      const [replicas, applyRenewal] = done;
      this.#learn(replicas);
      this.#state.registeredAt = startedAt;
      applyRenewal();
      if (!isIn && !this.#state.isClosed) this.#setIn(true);
      this.#watchTime();
      if (this.#state.isWarned) this.#warn("the store is reached again");
      this.#state.isWarned = false;
    } catch (error) {
      if (!this.#state.isWarned) this.#warn("the store cannot be reached", error);
      this.#state.isWarned = true;
      throw error;
    }
  }

  #learn(replicas: ReadonlyMap<string, string>): void {
    const { others } = this.#state;
    others.clear();
    for (const [id, facts] of replicas) {
      if (id === this.id) continue;
      const replica = parseFacts(id, facts);
      if (!("unusable" in replica)) others.set(id, replica);
      else if (!this.#warnedOf.has(id)) this.#warn(`replica ${id} cannot be used: ${replica.unusable}`);
      if ("unusable" in replica) this.#warnedOf.add(id);
    }
    for (const id of this.#warnedOf) if (!replicas.has(id)) this.#warnedOf.delete(id);
  }

  #renewAgain(afterMs: number): void {
    if (this.#state.isClosed) return;
    this.#stop.renewal = this.#clock.timer(afterMs, () => {
      this.#renewed().then(
        () => this.#renewAgain(Math.max(1, this.#state.startedAt + renewMs - this.#clock.now())),
        () => this.#renewAgain(retryMs),
      );
    });
  }

  /** Has {@link isIn} read at the moment when it turns false, so that leases are lost in time. */
  #watchTime(): void {
    this.#stop.out();
    if (!this.isIn || this.#state.isClosed) return;
    const provenAt = Math.min(this.#state.registeredAt, this.#leases.provenAt);
    const leftMs = Math.ceil(provenAt + inMs - this.#clock.now());
    this.#stop.out = this.#clock.timer(Math.max(1, leftMs), () => this.#watchTime());
  }

  #setIn(isIn: boolean): void {
    this.#state.isIn = isIn;
    if (!isIn) this.#leases.loseAll();
    for (const listener of this.#listeners) listener(isIn);
  }

  #warn(text: string, error?: unknown): void {
    this.#options.onWarning?.(text, error);
  }
}
