import { type Clock, systemClock } from "@junctor/core/async";
import { StoreError } from "@junctor/core/errors";
import { createFactSigner, type FactSigner, signatureLength } from "./fact-signature.ts";
import { type EngineClient, RedisConnection } from "./redis-connection.ts";
import {
  claimScript,
  type EngineScript,
  registerScript,
  releaseScript,
  renewScript,
  runScript,
  takeScript,
} from "./redis-scripts.ts";
import { parseStoreUrl } from "./redis-url.ts";
import { assertKey, assertKeys, assertLimit, assertTtl, assertValue, storeBounds } from "./store-bounds.ts";
import type { ClusterStore } from "./store.ts";

interface RedisStoreOptions {
  /** `redis://…`, `rediss://…` or `unix://…`; see {@link parseStoreUrl}. */
  readonly url: string;
  /** The secrets that all replicas have: values, registrations and news are signed with the first, and believed with any of them. */
  readonly secrets: readonly string[];
  /** The start of all keys and channels, so that several gateways can share an engine. `junctor:` by default. */
  readonly prefix?: string;
  readonly clock?: Clock;
  /** The time of limits. The engine's own by default, because the clocks of replicas differ. */
  readonly limitClock?: Pick<Clock, "now">;
  readonly onWarning?: (text: string, error?: unknown) => void;
}

/** How long an operation may take before the engine counts as gone. */
const operationMs = 5_000;

/**
 * Keeps the facts of replicas in Valkey or Redis, over two connections: one for commands, one for news. A lost connection is
 * opened again; until then operations reject. The engine must not evict keys (`noeviction`).
 *
 * Values, registrations and news that are not signed with a secret of the replicas count as absent. Leases and limits are not signed:
 * a program that may write to the engine could also delete them.
 *
 * @throws StoreError when the URL is wrong, `@redis/client` is missing, or the engine cannot be reached for 10 s
 */
export async function connectRedisStore(options: RedisStoreOptions): Promise<ClusterStore> {
  const { url, secrets, prefix = "junctor:", clock = systemClock, limitClock, onWarning } = options;
  const address = parseStoreUrl(url);
  const createClient = await loadClient();
  const listeners = new Set<(news: string) => void>();
  // Channels are of the whole engine, not of a database.
  const channel = address.database === 0 ? `${prefix}news` : `${prefix}news:${address.database}`;
  const signer = createFactSigner(secrets);
  /** The kinds of facts that were ignored: a warning each, because whoever writes them could fill the log. */
  const ignored = new Set<string>();
  const ignore = (what: string): void => {
    if (!ignored.has(what)) onWarning?.(`${what} in the store is ignored: ${notSigned}`);
    ignored.add(what);
  };
  const hear = (signed: string): void => {
    const isShort = signed.length <= storeBounds.value + signatureLength;
    const news = isShort ? signer.open(channel, signed) : undefined;
    if (news === undefined) return ignore("news");
    for (const listener of listeners) {
      try {
        listener(news);
      } catch (error) {
        onWarning?.("news from another replica could not be used", error);
      }
    }
  };
  const age = new EngineAge(clock);
  const shared = { address, createClient, clock, operationMs };
  const commands = new RedisConnection({ ...shared, prepare: (client) => age.learn(client) });
  const news = new RedisConnection({
    ...shared,
    prepare: async (client) => void (await client.subscribe(channel, hear)),
  });
  try {
    await commands.open();
    await news.open();
  } catch (error) {
    await commands[Symbol.asyncDispose]();
    throw error;
  }
  const store = createOperations(commands, { prefix, channel, age, signer, limitClock, ignore });
  return {
    ...store,
    onNews: (listener) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    [Symbol.asyncDispose]: async () => {
      listeners.clear();
      await Promise.all([commands[Symbol.asyncDispose](), news[Symbol.asyncDispose]()]);
    },
  };
}

interface OperationParts {
  readonly prefix: string;
  readonly channel: string;
  readonly age: EngineAge;
  readonly signer: FactSigner;
  readonly limitClock: RedisStoreOptions["limitClock"] | undefined;
  /** Tells of a fact that was not signed. */
  readonly ignore: (what: string) => void;
}

const notSigned =
  "it is not signed with JUNCTOR_SECRET. Another program writes to the store, or a replica has another secret: set the same for all";

function createOperations(
  connection: RedisConnection,
  { prefix, channel, age, signer, limitClock, ignore }: OperationParts,
): Omit<ClusterStore, "onNews" | typeof Symbol.asyncDispose> {
  const run = (script: EngineScript, keys: readonly string[], args: readonly unknown[]): Promise<unknown> =>
    runScript(
      connection,
      script,
      keys.map((key) => prefix + key),
      args.map(String),
    );
  return {
    claim: async (key, holder, ttlMs) => {
      assertKey(key);
      assertKey(holder, "The holder");
      assertTtl(ttlMs);
      age.assertOlder(ttlMs);
      return String(await run(claimScript, [key], [holder, ttlMs]));
    },
    renew: async (keys, holder, ttlMs) => {
      assertKeys(keys);
      assertKey(holder, "The holder");
      assertTtl(ttlMs);
      if (keys.length === 0) return [];
      const kept = (await run(renewScript, keys, [holder, ttlMs])) as readonly unknown[];
      return kept.map((one) => one === 1);
    },
    release: async (key, holder) => void (await run(releaseScript, [key], [holder])),
    read: async (key) => {
      const value = (await connection.send(["GET", prefix + key])) as string | null;
      return value === null ? undefined : signer.open(prefix + key, value);
    },
    write: async (key, value, ttlMs) => {
      assertKey(key);
      assertValue(value);
      assertTtl(ttlMs);
      const signed = signer.sign(prefix + key, value);
      await connection.send(["SET", prefix + key, signed, "PX", String(ttlMs)]);
    },
    register: async (id, facts, ttlMs) => {
      assertKey(id, "The id of the replica");
      assertValue(facts, "The facts of the replica");
      assertTtl(ttlMs);
      const start = `${prefix}replica:`;
      const args = [id, signer.sign(start + id, facts), ttlMs, start];
      const found = (await run(registerScript, ["replicas"], args)) as readonly string[];
      const replicas = new Map<string, string>();
      for (let at = 0; at + 1 < found.length; at += 2) {
        const [other = "", signed = ""] = found.slice(at, at + 2);
        const known = signer.open(start + other, signed);
        if (known === undefined) ignore("the registration of a replica");
        else replicas.set(other, known);
      }
      return replicas;
    },
    isYoung: (ms) => age.leftMs(ms) > 0,
    unregister: async (id) => void (await connection.send(["DEL", `${prefix}replica:${id}`])),
    take: async (limit, count) => {
      assertLimit(limit, count);
      const { key, everyMs, burst } = limit;
      const time = limitClock === undefined ? [] : [limitClock.now()];
      const args = [everyMs, burst, count, ...time];
      const [given, waitMs] = (await run(takeScript, [key], args)) as readonly number[];
      return { count: given ?? 0, waitMs: waitMs ?? 0 };
    },
    publish: async (news) => {
      assertValue(news, "News");
      await connection.send(["PUBLISH", channel, signer.sign(channel, news)]);
    },
  };
}

/**
 * How long the engine has been running. One that was restarted has lost leases, or has those of an old copy. Their holders count
 * themselves in until they notice, so no other replica may have them before that.
 */
class EngineAge {
  readonly #clock: Clock;
  /** The latest moment at which it can have been started. */
  #startedAt = Infinity;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async learn(client: EngineClient): Promise<void> {
    const asked = this.#clock.now();
    const info = String(await client.sendCommand(["INFO", "server"]));
    const seconds = Number(/^uptime_in_seconds:(\d+)/mu.exec(info)?.[1] ?? 0);
    // The engine counts whole seconds of its wall clock.
    this.#startedAt = asked - Math.max(0, seconds - 1) * 1000;
  }

  /** How long it takes until the engine is as old as this; 0 or less when it is. */
  leftMs(ms: number): number {
    return this.#startedAt + ms - this.#clock.now();
  }

  assertOlder(ms: number): void {
    const leftMs = this.leftMs(ms);
    if (leftMs <= 0) return;
    const seconds = Math.ceil(leftMs / 1000);
    throw new StoreError(
      "store.starting",
      `The store was started a moment ago and gives leases again in ${seconds} s`,
    );
  }
}

async function loadClient(): Promise<(options: object) => EngineClient> {
  try {
    const { createClient } = await import("@redis/client");
    return createClient;
  } catch (error) {
    const text =
      "A store is named, and the package that speaks to it is missing: npm install @redis/client@6";
    throw new StoreError("store.client_missing", text, { cause: error });
  }
}
