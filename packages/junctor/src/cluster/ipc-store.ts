import { StoreError } from "@junctor/core/errors";
import { type IpcPort, openIpcChannel } from "./ipc-channel.ts";
import type { ClusterStore, SharedLimit } from "./store.ts";

/** An operation of the store, as it crosses to the primary. */
type Operation =
  | readonly ["claim", key: string, holder: string, ttlMs: number]
  | readonly ["renew", keys: readonly string[], holder: string, ttlMs: number]
  | readonly ["release", key: string, holder: string]
  | readonly ["read", key: string]
  | readonly ["write", key: string, value: string, ttlMs: number]
  | readonly ["register", id: string, facts: string, ttlMs: number]
  | readonly ["unregister", id: string]
  | readonly ["take", limit: SharedLimit, count: number]
  | readonly ["publish", news: string];

const channel = "store";

/** The store of the primary, as a worker uses it. It ends with the channel. */
export function createIpcStore(port: IpcPort): ClusterStore {
  const listeners = new Set<(news: string) => void>();
  const line = openIpcChannel<Operation, string>(port, channel, (news) => {
    for (const listener of listeners) listener(news);
  });
  let isClosed = false;
  const run = async <T>(...operation: Operation): Promise<T> => {
    if (isClosed) throw new StoreError("store.unreachable", "The store of this process is closed");
    try {
      return (await line.ask(operation)) as T;
    } catch (error) {
      const { code = "store.unreachable", message } = error as { code?: StoreError["code"]; message: string };
      throw new StoreError(code, message);
    }
  };
  return {
    claim: (key, holder, ttlMs) => run("claim", key, holder, ttlMs),
    renew: (keys, holder, ttlMs) => run("renew", keys, holder, ttlMs),
    release: (key, holder) => run("release", key, holder),
    read: (key) => run("read", key),
    write: (key, value, ttlMs) => run("write", key, value, ttlMs),
    register: (id, facts, ttlMs) => run("register", id, facts, ttlMs),
    unregister: (id) => run("unregister", id),
    take: (limit, count) => run("take", limit, count),
    publish: (news) => run("publish", news),
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

/** A store that one worker uses. */
interface ServedStore {
  /** Takes the worker out of the replicas: its process has ended. */
  unregister(): Promise<void>;
  /** Gives its leases back: its children have ended too. Before that, another replica could start a server twice. */
  release(): Promise<void>;
}

/** Lets a worker use the store of this process, and remembers what it has there. */
export function serveStore(port: IpcPort, store: ClusterStore): ServedStore {
  const replicas = new Set<string>();
  /** Holders by key. */
  const leases = new Map<string, string>();
  const note = (key: string, holder: string, isHeld: boolean): void => {
    if (isHeld) leases.set(key, holder);
    else leases.delete(key);
  };
  let hasEnded = false;
  const serve = async (operation: Operation): Promise<unknown> => {
    // Messages of a worker may be read after its end was noticed.
    if (hasEnded) throw new StoreError("store.unreachable", "The worker has ended");
    switch (operation[0]) {
      case "claim": {
        const [, key, holder, ttlMs] = operation;
        // Noted first: the worker may end before the store answers.
        note(key, holder, true);
        const current = await store.claim(key, holder, ttlMs);
        if (current !== holder) note(key, holder, false);
        return current;
      }
      case "renew": {
        const [, keys, holder, ttlMs] = operation;
        const kept = await store.renew(keys, holder, ttlMs);
        for (const [index, key] of keys.entries()) note(key, holder, kept[index] === true);
        return kept;
      }
      case "release":
        leases.delete(operation[1]);
        return store.release(operation[1], operation[2]);
      case "read":
        return store.read(operation[1]);
      case "write":
        return store.write(operation[1], operation[2], operation[3]);
      case "register":
        replicas.add(operation[1]);
        return store.register(operation[1], operation[2], operation[3]);
      case "unregister":
        replicas.delete(operation[1]);
        return store.unregister(operation[1]);
      case "take":
        return store.take(operation[1], operation[2]);
      case "publish":
        return store.publish(operation[1]);
    }
  };
  const line = openIpcChannel<string, Operation>(port, channel, serve);
  const stopNews = store.onNews((news) => line.tell(news));
  port.once("disconnect", stopNews);
  return {
    unregister: async () => {
      hasEnded = true;
      stopNews();
      await Promise.all([...replicas].map((id) => store.unregister(id)));
    },
    release: async () => {
      await Promise.all([...leases].map(([key, holder]) => store.release(key, holder)));
    },
  };
}
