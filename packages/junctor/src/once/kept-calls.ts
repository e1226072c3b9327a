import { type Awaitable, type Clock, createDeferred, type Deferred, systemClock } from "@junctor/core/async";
import { RpcError } from "@junctor/core/errors";
import { type KeptEnd, sizeOf, wasNotSent } from "./call-end.ts";

/** A call that has a key. */
interface KeptCall {
  /** Caller and key; for a later round of questions, also what was answered. */
  readonly id: string;
  /** What is called, with which arguments. */
  readonly fingerprint: string;
  /** Whose the key is, so that no caller takes all the room. */
  readonly owner: string | undefined;
}

/** A call that was begun before, here or elsewhere. */
export interface EarlierCall {
  readonly fingerprint: string;
  /** Rejects, with an `RpcError`, if it cannot be learned now. */
  readonly ended: Awaitable<KeptEnd>;
}

/** What remembers keyed calls beyond the memory of this process: a file, or the store that replicas share. */
export interface CallLedger {
  /** Notes, before it is sent, that a call begins; or returns the one that has its key. Rejects if that cannot be noted. */
  begin(call: KeptCall): Awaitable<EarlierCall | undefined>;
  end(id: string, end: KeptEnd): Awaitable<void>;
  /** Nothing was sent: the key may be used again. */
  release(id: string): Awaitable<void>;
}

/** How much is kept of calls with keys, and for how long. */
export interface KeptCallsOptions {
  /** How long an end is kept; one hour. */
  readonly keepMs?: number;
  /** The most keys; 65,536. One caller may have a quarter of them. */
  readonly maxKeys?: number;
  /** The most bytes of all ends; 64 MiB. Beyond that, only the fact stays that the oldest calls ended. */
  readonly maxBytes?: number;
  /** The time that ends are forgotten by; the system's. */
  readonly clock?: Clock;
  /** Notes calls as well, so that they are known beyond this process. */
  readonly ledger?: CallLedger | undefined;
}

/** An end that is larger is not kept: only the fact that the call ended. */
const maxEndBytes = 4 * 1024 * 1024;

interface Entry {
  readonly call: KeptCall;
  readonly ended: Deferred<KeptEnd>;
  end: KeptEnd | undefined;
  bytes: number;
  /** When it is forgotten; undefined while it is underway. */
  expiresAt: number | undefined;
}

/** The calls that came with a key: those underway, and how the others ended. */
export class KeptCalls {
  readonly #clock: Clock;
  readonly #keepMs: number;
  readonly #maxKeys: number;
  readonly #maxBytes: number;
  readonly #ledger: CallLedger | undefined;
  readonly #underway = new Map<string, Entry>();
  /** Oldest first. */
  readonly #ended = new Map<string, Entry>();
  readonly #counts = new Map<string | undefined, number>();
  #bytes = 0;

  constructor(options: KeptCallsOptions = {}) {
    const {
      keepMs = 3_600_000,
      maxKeys = 65_536,
      maxBytes = 64 * 1024 * 1024,
      clock = systemClock,
    } = options;
    this.#clock = clock;
    this.#keepMs = keepMs;
    this.#maxKeys = maxKeys;
    this.#maxBytes = maxBytes;
    this.#ledger = options.ledger;
  }

  /** How many keys are known. */
  get size(): number {
    return this.#underway.size + this.#ended.size;
  }

  /**
   * Takes a key for a call: undefined if the call is to be made now. Else the end of the call that has the key, once it has ended.
   *
   * @throws RpcError when the key is that of another call, or there is no room
   */
  begin(call: KeptCall): Awaitable<Awaitable<KeptEnd> | undefined> {
    this.#forgetExpired();
    const known = this.#underway.get(call.id) ?? this.#ended.get(call.id);
    if (known !== undefined) {
      assertSame(known.call, call);
      return known.end ?? known.ended.promise;
    }
    this.#assertRoom(call);
    const entry: Entry = { call, ended: createDeferred(), end: undefined, bytes: 0, expiresAt: undefined };
    // Often no duplicate waits for it.
    entry.ended.promise.catch(() => {});
    this.#underway.set(call.id, entry);
    this.#counts.set(call.owner, (this.#counts.get(call.owner) ?? 0) + 1);
    return this.#ledger === undefined ? undefined : this.#beginIn(this.#ledger, entry);
  }

  /** Keeps the end of a call that began here. */
  async end(id: string, end: KeptEnd): Promise<void> {
    const entry = this.#underway.get(id);
    if (entry === undefined) return;
    if (wasNotSent(end)) return this.#release(entry, end);
    const kept: KeptEnd = sizeOf(end) > maxEndBytes ? { kind: "dropped" } : end;
    await this.#ledger?.end(id, kept);
    this.#settle(entry, kept, end);
  }

  /** Nothing was done: the key may be used again. Duplicates that wait get this end. */
  async #release(entry: Entry, end: KeptEnd): Promise<void> {
    await this.#ledger?.release(entry.call.id);
    this.#forget(entry);
    entry.ended.resolve(end);
  }

  async #beginIn(ledger: CallLedger, entry: Entry): Promise<Awaitable<KeptEnd> | undefined> {
    const { call } = entry;
    try {
      const earlier = await ledger.begin(call);
      if (earlier === undefined) return undefined;
      assertSame(earlier, call);
      const end = await earlier.ended;
      this.#settle(entry, end, end);
      return end;
    } catch (error) {
      this.#forget(entry);
      entry.ended.reject(error);
      throw error;
    }
  }

  /** Duplicates that wait get the end also if it is too large to be kept. */
  #settle(entry: Entry, kept: KeptEnd, full: KeptEnd): void {
    const { id } = entry.call;
    this.#underway.delete(id);
    entry.end = kept;
    entry.bytes = sizeOf(kept);
    entry.expiresAt = this.#clock.now() + this.#keepMs;
    this.#ended.set(id, entry);
    this.#bytes += entry.bytes;
    entry.ended.resolve(full);
    for (const oldest of this.#ended.values()) {
      if (this.#bytes <= this.#maxBytes) break;
      this.#bytes -= oldest.bytes;
      oldest.bytes = 0;
      oldest.end = { kind: "dropped" };
    }
  }

  #forgetExpired(): void {
    const now = this.#clock.now();
    for (const entry of this.#ended.values()) {
      if ((entry.expiresAt ?? now) > now) return;
      this.#forget(entry);
    }
  }

  #forget({ call, bytes }: Entry): void {
    this.#underway.delete(call.id);
    if (this.#ended.delete(call.id)) this.#bytes -= bytes;
    const left = (this.#counts.get(call.owner) ?? 1) - 1;
    if (left > 0) this.#counts.set(call.owner, left);
    else this.#counts.delete(call.owner);
  }

  /** Forgetting a key that is still good would let its call run twice, so it is the new call that is refused. */
  #assertRoom({ owner }: KeptCall): void {
    const isGreedy = (this.#counts.get(owner) ?? 0) >= Math.max(1, this.#maxKeys / 4);
    if (!isGreedy && this.size < this.#maxKeys) return;
    const code = isGreedy ? "rpc.too_many" : "rpc.overloaded";
    const [oldest] = this.#ended.values();
    const retryAfterMs = Math.max(1000, (oldest?.expiresAt ?? 0) - this.#clock.now());
    throw new RpcError(code, "Too many idempotency keys are kept; nothing was done", {
      data: { code, delivery: "not_sent", retryAfterMs },
    });
  }
}

function assertSame(known: Pick<KeptCall, "fingerprint">, call: KeptCall): void {
  if (known.fingerprint === call.fingerprint) return;
  throw new RpcError(
    "rpc.key_reused",
    "This idempotency key is that of another call: use a new key for other arguments. Nothing was done",
    { data: { code: "rpc.key_reused", delivery: "not_sent" } },
  );
}
