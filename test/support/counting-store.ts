import type { ClusterStore } from "../../packages/junctor/src/cluster/store.ts";

/** A store that counts its operations by their names. */
export interface CountingStore extends ClusterStore {
  /** How often each operation was asked for; those that never were are not here. */
  readonly counts: ReadonlyMap<keyof ClusterStore, number>;
  /** All operations but the renewals and looks that every member makes all the time. */
  readonly total: number;
  reset(): void;
}

export function withCounts(store: ClusterStore): CountingStore {
  const counts = new Map<keyof ClusterStore, number>();
  const counted =
    <Args extends unknown[], T>(name: keyof ClusterStore, operation: (...args: Args) => T) =>
    (...args: Args): T => {
      counts.set(name, (counts.get(name) ?? 0) + 1);
      return operation(...args);
    };
  const readCounted = counted("read", store.read);
  return {
    claim: counted("claim", store.claim),
    renew: counted("renew", store.renew),
    release: counted("release", store.release),
    // Every member looks every 3 s whether a caller was revoked.
    read: (key) => (key === "revoked" ? store.read(key) : readCounted(key)),
    write: counted("write", store.write),
    register: counted("register", store.register),
    unregister: counted("unregister", store.unregister),
    take: counted("take", store.take),
    publish: counted("publish", store.publish),
    onNews: store.onNews,
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
    counts,
    get total() {
      const all = [...counts.values()].reduce((sum, count) => sum + count, 0);
      return all - (counts.get("register") ?? 0) - (counts.get("renew") ?? 0);
    },
    reset: () => counts.clear(),
  };
}
