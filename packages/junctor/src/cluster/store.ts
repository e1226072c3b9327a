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
   * Prolongs leases that this holder has, at most 1,000, and takes those again that no other has: an engine that was restarted
   * may have lost them. Says of each, in order, whether it has it.
   */
  renew(keys: readonly string[], holder: string, ttlMs: number): Promise<readonly boolean[]>;
  /** Gives a lease back, if this holder has it. */
  release(key: string, holder: string): Promise<void>;
  /** Resolves with a value that `write` wrote; undefined when its time is over. */
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
