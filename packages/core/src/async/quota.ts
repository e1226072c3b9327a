import { RpcError } from "../errors/index.ts";

/**
 * The most that one caller may hold or ask for. A caller is known by the name of its key; without keys, by
 * the address that requests come from over HTTP, and by the channel elsewhere. In addition, no caller holds
 * more than its share of the total. Each limit is read when it is applied, so a getter may change it.
 */
export interface CallerLimits {
  /** Calls underway over HTTP; 4,096. */
  readonly calls?: number;
  /** Streams that stay open: of `subscriptions/listen`, of legacy sessions, and of HTTP+SSE. */
  readonly streams?: number;
  /** Legacy sessions in memory. */
  readonly sessions?: number;
  /** Resources whose changes it is notified of; 4,096. */
  readonly subscriptions?: number;
  /** Completions it may ask for in a minute; 600, possibly all at once. */
  readonly completionsPerMinute?: number;
  /** Calls of a gateway that wait for its answers; 1,024. */
  readonly parked?: number;
  /** Bytes of answers over HTTP that it has not read; 64 MiB. */
  readonly unreadBytes?: number;
}

interface QuotaOptions {
  /** The name of the shared thing, in the plural: for messages. */
  readonly what: string;
  /** A total that may change is a function. */
  readonly total: number | (() => number);
  /** The most that one owner may hold. */
  readonly each?: number | (() => number | undefined) | undefined;
}

/** An owner may hold this many times as much as is left: one alone has four fifths, two have four ninths each. */
const greed = 4;
/**
 * Most owners remembered while they hold nothing: adding and deleting an owner for
 * each call would be expensive.
 */
const maxIdleOwners = 1024;
const retryAfterMs = 1000;

/**
 * Counts how much of a limited resource each owner holds. An owner may take more while it holds less than
 * four times what is left, so the more it holds, the earlier it is refused, and it cannot take the last from
 * an owner that holds less.
 */
export class Quota<Owner = unknown> {
  readonly #what: string;
  readonly #totalNow: () => number;
  readonly #eachNow: () => number | undefined;
  readonly #owners = new Map<Owner, { held: number }>();
  #held = 0;

  constructor({ what, total, each }: QuotaOptions) {
    this.#what = what;
    this.#totalNow = typeof total === "function" ? total : () => total;
    this.#eachNow = typeof each === "function" ? each : () => each;
  }

  get #total(): number {
    return this.#totalNow();
  }

  get #each(): number {
    return this.#eachNow() ?? Infinity;
  }

  /** While less than this is held in all, no owner is at a limit. */
  get ample(): number {
    return Math.min(this.#each, Math.floor((this.#total * greed) / (greed + 1)));
  }

  /** How much is held by all. */
  get held(): number {
    return this.#held;
  }

  heldBy(owner: Owner): number {
    return this.#owners.get(owner)?.held ?? 0;
  }

  /** The error for an owner that may not take this much now; undefined when it may. */
  refusal(owner: Owner, amount = 1): RpcError | undefined {
    if (this.#held + amount <= this.ample) return undefined;
    const held = this.heldBy(owner);
    if (held + amount > this.#each) return tooMany(this.#what, this.#each);
    const left = this.#total - this.#held - amount + 1;
    if (left < 1 && held === 0) return overloaded(this.#what, this.#total);
    if (held + amount - 1 < greed * left) return undefined;
    return left < 1 ? overloaded(this.#what, this.#total) : tooMany(this.#what, held);
  }

  /** Takes an amount, or throws the refusal. */
  take(owner: Owner, amount = 1): void {
    const refused = this.refusal(owner, amount);
    if (refused !== undefined) throw refused;
    this.add(owner, amount);
  }

  /** Takes an amount without a check: for an owner that was checked before. */
  add(owner: Owner, amount = 1): void {
    this.#held += amount;
    const known = this.#owners.get(owner);
    if (known === undefined) this.#owners.set(owner, { held: amount });
    else known.held += amount;
  }

  give(owner: Owner, amount = 1): void {
    const known = this.#owners.get(owner);
    if (known === undefined) return;
    this.#held -= amount;
    known.held -= amount;
    const isForgotten = typeof owner === "object" || this.#owners.size > maxIdleOwners;
    if (known.held <= 0 && isForgotten) this.#owners.delete(owner);
  }

  /** Whether an owner holds something, and no less than the average of all that do. */
  isGreedy(owner: Owner): boolean {
    const held = this.heldBy(owner);
    let owners = 0;
    for (const each of this.#owners.values()) if (each.held > 0) owners++;
    return held > 0 && held * owners >= this.#held;
  }

  /** The owner that holds most. */
  greediest(): Owner | undefined {
    let greediest: Owner | undefined;
    let most = 0;
    for (const [owner, { held }] of this.#owners) {
      if (held <= most) continue;
      most = held;
      greediest = owner;
    }
    return greediest;
  }
}

function tooMany(what: string, most: number): RpcError {
  const text = `You hold too many ${what}; at most ${most} now. End some of them, or try again later`;
  const data = { code: "rpc.too_many", delivery: "not_sent", most, retryAfterMs };
  return new RpcError("rpc.too_many", text, { data });
}

function overloaded(what: string, most: number): RpcError {
  const text = `There are too many ${what}; at most ${most} for all callers. Try again later`;
  const data = { code: "rpc.overloaded", delivery: "not_sent", most, retryAfterMs };
  return new RpcError("rpc.overloaded", text, { data });
}
