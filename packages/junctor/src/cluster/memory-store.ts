import { type Clock, systemClock } from "@junctor/core/async";
import { StoreError } from "@junctor/core/errors";
import {
  assertKey,
  assertKeys,
  assertLimit,
  assertTtl,
  assertValue,
  type ClusterStore,
  type SharedLimit,
  type TakenTokens,
} from "./store.ts";

/**
 * The facts of replicas that share one process, or whose primary process holds them. Nothing outlives the process. There may be
 * `maxKeys` leases and values, and as many limits; 262,144 by default.
 */
export function createMemoryClusterStore(
  options: { readonly clock?: Clock; readonly maxKeys?: number } = {},
): ClusterStore {
  const { clock = systemClock, maxKeys = 262_144 } = options;
  const values = new ExpiringMap<string>(clock, maxKeys);
  const replicas = new ExpiringMap<string>(clock, maxReplicas);
  /** By limit, the time at which it is unused again. */
  const limits = new ExpiringMap<number>(clock, maxKeys);
  const listeners = new Set<(news: string) => void>();
  let isClosed = false;

  /** Runs an operation in a later turn, as an engine would. */
  const run = async <T>(operation: () => T): Promise<T> => {
    await Promise.resolve();
    if (isClosed) throw new StoreError("store.unreachable", "The store of this process is closed");
    return operation();
  };
  const prolong = (key: string, holder: string, ttlMs: number): boolean => {
    if ((values.get(key) ?? holder) !== holder) return false;
    values.set(key, holder, ttlMs);
    return true;
  };

  return {
    claim: (key, holder, ttlMs) =>
      run(() => {
        assertLease(key, holder, ttlMs);
        return prolong(key, holder, ttlMs) ? holder : (values.get(key) ?? holder);
      }),
    renew: (keys, holder, ttlMs) =>
      run(() => {
        assertKeys(keys);
        assertLease("-", holder, ttlMs);
        return keys.map((key) => prolong(key, holder, ttlMs));
      }),
    release: (key, holder) =>
      run(() => {
        if (values.get(key) === holder) values.delete(key);
      }),
    read: (key) => run(() => values.get(key)),
    write: (key, value, ttlMs) =>
      run(() => {
        assertKey(key);
        assertValue(value);
        assertTtl(ttlMs);
        values.set(key, value, ttlMs);
      }),
    register: (id, facts, ttlMs) =>
      run(() => {
        assertKey(id, "The id of the replica");
        assertValue(facts, "The facts of the replica");
        assertTtl(ttlMs);
        replicas.set(id, facts, ttlMs);
        return replicas.all();
      }),
    unregister: (id) => run(() => replicas.delete(id)),
    take: (limit, count) =>
      run(() => {
        assertLimit(limit, count);
        const now = clock.now();
        const { taken, freeAt } = takeTokens({ limit, count, now, freeAt: limits.get(limit.key) });
        if (taken.count > 0) limits.set(limit.key, freeAt, freeAt - now);
        return taken;
      }),
    publish: (news) =>
      run(() => {
        assertValue(news, "News");
        for (const listener of listeners) listener(news);
      }),
    onNews: (listener) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    [Symbol.asyncDispose]: async () => {
      isClosed = true;
      listeners.clear();
    },
  };
}

const maxReplicas = 4096;

function assertLease(key: string, holder: string, ttlMs: number): void {
  assertKey(key);
  assertKey(holder, "The holder");
  assertTtl(ttlMs);
}

interface TakeRequest {
  readonly limit: SharedLimit;
  readonly count: number;
  readonly now: number;
  /** When the limit is unused again, if nothing more is taken. */
  readonly freeAt: number | undefined;
}

/**
 * The generic cell rate algorithm: each token moves the time at which the limit is unused again, and that time may lie a burst
 * ahead. The Lua script of the Redis store does the same.
 */
function takeTokens({ limit, count, now, freeAt = now }: TakeRequest): {
  readonly taken: TakenTokens;
  readonly freeAt: number;
} {
  const { everyMs, burst } = limit;
  const spanMs = everyMs * burst;
  // A clock that was set back, or a burst that was made smaller, must not close the limit for longer than a burst.
  const start = Math.min(Math.max(freeAt, now), now + spanMs);
  // Sums of fractions fall short of a whole token by less than this.
  const available = Math.floor((now + spanMs - start) / everyMs + 1e-6);
  const granted = Math.max(0, Math.min(count, available));
  const waitMs = granted > 0 ? 0 : Math.max(1, Math.ceil(start + everyMs - now - spanMs));
  return { taken: { count: granted, waitMs }, freeAt: start + granted * everyMs };
}

/** Values that expire. Expired ones are swept when their number has doubled, so memory follows the number of live values. */
class ExpiringMap<V> {
  readonly #clock: Clock;
  readonly #maxKeys: number;
  readonly #entries = new Map<string, { readonly value: V; readonly until: number }>();
  #sweepAt = 1024;

  constructor(clock: Clock, maxKeys: number) {
    this.#clock = clock;
    this.#maxKeys = maxKeys;
    this.#sweepAt = Math.min(this.#sweepAt, maxKeys);
  }

  get(key: string): V | undefined {
    const entry = this.#entries.get(key);
    return entry !== undefined && this.#clock.now() < entry.until ? entry.value : undefined;
  }

  set(key: string, value: V, ttlMs: number): void {
    if (!this.#entries.has(key) && this.#entries.size >= this.#sweepAt) this.#sweep();
    this.#entries.set(key, { value, until: this.#clock.now() + ttlMs });
  }

  delete(key: string): void {
    this.#entries.delete(key);
  }

  all(): ReadonlyMap<string, V> {
    this.#sweep(Infinity);
    return new Map([...this.#entries].map(([key, { value }]) => [key, value]));
  }

  #sweep(room: number = this.#maxKeys): void {
    const now = this.#clock.now();
    for (const [key, { until }] of this.#entries) if (until <= now) this.#entries.delete(key);
    this.#sweepAt = Math.min(this.#maxKeys, Math.max(1024, 2 * this.#entries.size));
    if (this.#entries.size >= room)
      throw new StoreError("store.full", `The store of this process holds ${room} facts, which is the most`);
  }
}
