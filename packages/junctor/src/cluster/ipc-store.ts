import { Buffer } from "node:buffer";
import { deserialize, serialize } from "node:v8";
import { StoreError } from "@junctor/core/errors";
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
  const ipc = openIpcChannel<Operation, string>(port, channel, (news) => {
    for (const listener of listeners) listener(news);
  });
  let isClosed = false;
  const run = async <T>(...operation: Operation): Promise<T> => {
    if (isClosed) throw new StoreError("store.unreachable", "The store of this process is closed");
    try {
      return (await ipc.ask(operation)) as T;
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
  const ipc = openIpcChannel<string, Operation>(port, channel, serve);
  const stopNews = store.onNews((news) => ipc.tell(news));
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

/** One end of the channel between the primary and a worker: a child process, or `process` itself. */
export interface IpcPort {
  send?(message: object, callback: (error: Error | null) => void): boolean;
  on(event: "message", listener: (message: unknown) => void): unknown;
  once(event: "disconnect", listener: () => void): unknown;
}

/** One named exchange of messages on such a channel. Other messages on it are ignored. */
export interface IpcChannel<Sent> {
  /** Sends a message without an answer. It is lost when the other side is gone. */
  tell(message: Sent): void;
  /** Resolves with the answer of the other side. Rejects when that fails or is gone, or when 4,096 others wait for one. */
  ask(message: Sent): Promise<unknown>;
}

const maxWaiting = 4096;
/** The code of the error when that is reached. */
const fullCode = "store.full";

/** The form on the wire. The content is packed, because JSON would lose `undefined`, `Infinity` and the like. */
interface Frame {
  /** The name of the exchange. */
  readonly junctor: string;
  readonly kind: "tell" | "ask" | "answer" | "failure";
  readonly id: number;
  readonly content: string;
}

/**
 * Opens the exchange of this name. `answer` takes each message of the other side; its result is the answer to one that asks, and
 * an error that it throws reaches the other side with its message and `code`.
 */
export function openIpcChannel<Sent, Taken>(
  port: IpcPort,
  name: string,
  answer: (message: Taken) => unknown,
): IpcChannel<Sent> {
  const waiting = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>();
  let lastId = 0;
  let isGone = false;
  const send = (kind: Frame["kind"], id: number, content: unknown): void => {
    const onSent = (error: Error | null): void => {
      if (error !== null) fail(id, error);
    };
    const frame: Frame = { junctor: name, kind, id, content: serialize(content).toString("base64") };
    port.send?.(frame, onSent);
  };
  const fail = (id: number, error: Error): void => {
    waiting.get(id)?.reject(error);
    waiting.delete(id);
  };
  const settle = ({ kind, id, content }: Frame): void => {
    const value: unknown = deserialize(Buffer.from(content, "base64"));
    if (kind === "failure") return fail(id, toError(value as IpcFailure));
    waiting.get(id)?.resolve(value);
    waiting.delete(id);
  };
  const take = async ({ kind, id, content }: Frame): Promise<void> => {
    try {
      const value = await answer(deserialize(Buffer.from(content, "base64")) as Taken);
      if (kind === "ask") send("answer", id, value);
    } catch (error) {
      if (kind === "ask") send("failure", id, toFailure(error));
    }
  };
  port.on("message", (message) => {
    if (!isFrame(message) || message.junctor !== name) return;
    if (message.kind === "answer" || message.kind === "failure") settle(message);
    else void take(message);
  });
  port.once("disconnect", () => {
    isGone = true;
    for (const id of waiting.keys()) fail(id, new Error("the other process is gone"));
  });
  return {
    tell: (message) => send("tell", 0, message),
    ask: (message) =>
      new Promise((resolve, reject) => {
        if (isGone) return reject(new Error("the other process is gone"));
        if (waiting.size >= maxWaiting)
          return reject(
            toError({ message: "too many questions wait for the other process", code: fullCode }),
          );
        const id = ++lastId;
        waiting.set(id, { resolve, reject });
        send("ask", id, message);
      }),
  };
}

interface IpcFailure {
  readonly message: string;
  readonly code: string | undefined;
}

function toFailure(error: unknown): IpcFailure {
  if (!(error instanceof Error)) return { message: String(error), code: undefined };
  const { message, code } = error as NodeJS.ErrnoException;
  return { message, code };
}

function toError({ message, code }: IpcFailure): Error {
  return Object.assign(new Error(message), { code });
}

/** Both processes run the same version of this code, so a frame needs no closer check. */
function isFrame(message: unknown): message is Frame {
  return typeof message === "object" && message !== null && "junctor" in message && "content" in message;
}
