import { StoreError } from "@junctor/core/errors";

/**
 * The facts that the replicas of one gateway share: which replicas are alive, who owns what, what was deleted or revoked, and how
 * much of a limit is used. Payloads never go through it, and a plain call makes no operation on it.
 *
 * Every operation rejects with a `StoreError` when the engine cannot be reached. Keys and values are short texts.
 */
export interface ClusterStore extends AsyncDisposable {
  /**
   * Takes a lease unless another holder has it; prolongs it if this one has it. Resolves with its holder now. An engine that was started
   * less than `ttlMs` ago may have lost the leases of others, and refuses: `store.starting`.
   */
  claim(key: string, holder: string, ttlMs: number): Promise<string>;
  /**
   * Prolongs leases that this holder has, at most 1,000, and takes back those that no other holder has: an engine that was restarted
   * may have lost them. Resolves with whether it has each of them, in order.
   */
  renew(keys: readonly string[], holder: string, ttlMs: number): Promise<readonly boolean[]>;
  /** Gives a lease back, if this holder has it. */
  release(key: string, holder: string): Promise<void>;
  /** Resolves with a value that `write` wrote; undefined when it has expired. */
  read(key: string): Promise<string | undefined>;
  write(key: string, value: string, ttlMs: number): Promise<void>;
  /** Registers a replica, or prolongs its registration, and resolves with all replicas that are registered, by id. */
  register(id: string, facts: string, ttlMs: number): Promise<ReadonlyMap<string, string>>;
  /** Whether the engine was started less than `ms` ago: replicas that are alive may not have registered again. Never without an engine. */
  isYoung?(ms: number): boolean;
  /** Removes a registration: at an orderly end, or by the process that saw the replica die. */
  unregister(id: string): Promise<void>;
  /** Takes up to `count` tokens of a limit (GCRA). Resolves with how many were given, and when there is another one. */
  take(limit: SharedLimit, count: number): Promise<TakenTokens>;
  /** Tells all replicas, this one included. A replica that is not connected at the moment misses it. */
  publish(news: string): Promise<void>;
  onNews(listener: (news: string) => void): () => void;
}

/** A limit that all replicas share. */
export interface SharedLimit {
  readonly key: string;
  /** How long one token takes to come back. */
  readonly everyMs: number;
  readonly burst: number;
}

export interface TakenTokens {
  readonly count: number;
  /** When there is another token; 0 when some were given. */
  readonly waitMs: number;
}

/** The limits of keys, values and times. All stores refuse the same. */
export const storeBounds = {
  /** Characters of a key, of a holder and of the id of a replica. */
  key: 512,
  /** Characters of a value, of the facts of a replica and of one piece of news. */
  value: 4096,
  /** Keys of one `renew`. */
  renewed: 1000,
  /** A lease, value or registration lives for a week at most. */
  ttlMs: 604_800_000,
} as const;

export function assertKey(key: string, what = "The key"): void {
  if (key !== "" && key.length <= storeBounds.key) return;
  throw new StoreError(
    "store.invalid",
    `${what} must have 1 to ${storeBounds.key} characters, not ${key.length}`,
  );
}

export function assertValue(value: string, what = "The value"): void {
  if (value.length <= storeBounds.value) return;
  throw new StoreError(
    "store.invalid",
    `${what} must have at most ${storeBounds.value} characters, not ${value.length}`,
  );
}

export function assertTtl(ttlMs: number): void {
  if (Number.isInteger(ttlMs) && ttlMs >= 1 && ttlMs <= storeBounds.ttlMs) return;
  throw new StoreError(
    "store.invalid",
    `The time to live must be a whole number of milliseconds from 1 to ${storeBounds.ttlMs}, not ${ttlMs}`,
  );
}

export function assertKeys(keys: readonly string[]): void {
  if (keys.length > storeBounds.renewed)
    throw new StoreError(
      "store.invalid",
      `At most ${storeBounds.renewed} leases are renewed at once, not ${keys.length}`,
    );
  for (const key of keys) assertKey(key);
}

export function assertLimit({ key, everyMs, burst }: SharedLimit, count: number): void {
  assertKey(key);
  if (!(everyMs > 0 && burst >= 1 && everyMs * burst <= storeBounds.ttlMs))
    throw new StoreError(
      "store.invalid",
      `A limit must have everyMs above 0, a burst of 1 or more, and be full again within a week; not ${everyMs} and ${burst}`,
    );
  if (!Number.isInteger(count) || count < 1)
    throw new StoreError("store.invalid", `The number of tokens must be 1 or more, not ${count}`);
}
