import { type Clock, timedOut, waitFor } from "../async/clock.ts";
import { StoreError } from "../errors/store-error.ts";
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
  readonly onWarning: (text: string, error?: unknown) => void;
}

interface OwnLease {
  readonly key: string;
  readonly onLost: () => void;
  /** When the last operation started that proved that this replica has it. */
  provenAt: number;
}

/** Leases and claims that one process may have at the same time. */
const maxLeases = 65_536;

/** The leases of this replica. */
export class HeldLeases {
  readonly #options: HeldLeasesOptions;
  readonly #leases = new Map<string, OwnLease>();
  /** By key, the claim or release that is underway. A lease is claimed and given back in turn. */
  readonly #underway = new Map<string, Promise<unknown>>();
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

  hold(
    key: string,
    onLost: () => void,
    onHeld: () => void,
  ): Promise<HeldLease | { readonly holder: string }> {
    return this.#inTurn(key, async () => {
      const { clock, holder } = this.#options;
      if (this.#leases.has(key)) return { holder };
      this.#assertCanHold(key);
      const startedAt = clock.now();
      const current = await this.#operate((store) => store.claim(key, holder, this.#options.ttlMs));
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
    const { store, holder, ttlMs } = this.#options;
    const leases = [...this.#leases.values()];
    const parts: OwnLease[][] = [];
    for (let from = 0; from < leases.length; from += storeBounds.renewed)
      parts.push(leases.slice(from, from + storeBounds.renewed));
    const renewed = parts.map((part) => {
      const keys = part.map(({ key }) => key);
      return store.renew(keys, holder, ttlMs);
    });
    const isKept = (await Promise.all(renewed)).flat();
    return () => {
      for (const [index, lease] of leases.entries()) {
        if (this.#leases.get(lease.key) !== lease) continue;
        if (isKept[index] === true) lease.provenAt = startedAt;
        else this.#lose(lease);
      }
      this.#findOldest();
      const now = this.#options.clock.now();
      for (const [key, until] of this.#unsure) if (until <= now) this.#unsure.delete(key);
    };
  }

  /** This replica is out. */
  loseAll(): void {
    for (const lease of this.#leases.values()) this.#lose(lease);
    this.#findOldest();
  }

  async releaseAll(): Promise<void> {
    const releases = [...this.#leases.values()].map((lease) =>
      this.#inTurn(lease.key, () => this.#release(lease)),
    );
    await Promise.all(releases);
  }

  #lend(lease: OwnLease): HeldLease {
    const { key } = lease;
    const isHeld = (): boolean => this.#options.isIn() && this.#leases.get(key) === lease;
    return {
      get isHeld() {
        return isHeld();
      },
      release: () => this.#inTurn(key, () => this.#release(lease)),
    };
  }

  #lose(lease: OwnLease): void {
    this.#leases.delete(lease.key);
    try {
      lease.onLost();
    } catch (error) {
      this.#options.onWarning(`ending what depends on ${lease.key} failed`, error);
    }
  }

  async #release(lease: OwnLease): Promise<void> {
    const { holder, clock, ttlMs } = this.#options;
    if (this.#leases.get(lease.key) !== lease) return;
    this.#leases.delete(lease.key);
    this.#findOldest();
    try {
      await this.#operate((store) => store.release(lease.key, holder));
    } catch {
      this.#unsure.set(lease.key, clock.now() + ttlMs);
    }
  }

  async #operate<T>(operation: (store: ClusterStore) => Promise<T>): Promise<T> {
    const { store, clock, operationMs } = this.#options;
    const done = await waitFor(operation(store), { ms: operationMs, clock });
    if (done !== timedOut) return done;
    throw new StoreError("store.unreachable", `The store did not answer within ${operationMs / 1000} s`);
  }

  #assertCanHold(key: string): void {
    this.#assertIn();
    if (this.#leases.size + this.#underway.size > maxLeases)
      throw new StoreError("store.full", `This replica holds ${maxLeases} leases, which is the most`);
    if ((this.#unsure.get(key) ?? 0) > this.#options.clock.now())
      throw new StoreError(
        "store.unreachable",
        `Whether ${key} was given back is not known; try again in 10 s`,
      );
  }

  #assertIn(): void {
    if (this.#options.isIn()) return;
    const text = "This replica has not reached the store for 7 s, and owns nothing until it does";
    throw new StoreError("store.unreachable", text);
  }

  #findOldest(): void {
    this.#provenAt = Infinity;
    for (const { provenAt } of this.#leases.values()) this.#provenAt = Math.min(this.#provenAt, provenAt);
  }

  #inTurn<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.#underway.get(key);
    const turn = before === undefined ? work() : before.then(work, work);
    this.#underway.set(key, turn);
    const end = (): void => {
      if (this.#underway.get(key) === turn) this.#underway.delete(key);
    };
    turn.then(end, end);
    return turn;
  }
}
