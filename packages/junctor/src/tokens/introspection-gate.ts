import { type Clock, createDeferred, type Deferred, Quota } from "@junctor/core/async";
import { IssuerUnavailable } from "./fetch-json.ts";

/** Who sent a token that is looked up. */
export interface TokenSender {
  /** Whether the issuer vouched for this token before. */
  readonly isKnown: boolean;
  /** The address that the token came from. */
  readonly address: string | undefined;
}

interface Waiter extends TokenSender {
  readonly turn: Deferred<void>;
  readonly stopTimer: () => void;
}

/** Most lookups at the same time. */
const maxUnderway = 32;
/** Most of them about tokens that are not known: the rest is kept for tokens that are. */
const maxUnknownUnderway = 24;
/** Lookups a second that anybody can cause. */
const basePerS = 13;
/** Lookups that may begin at once after a pause. */
const burst = 2;
/** A good answer counts for about this long. Each allows one more lookup beside the one that repeats it. */
const goodMs = 30_000;
/** Most tokens that are not known and wait for their turn. */
const maxWaiting = 512;
/** How long a token waits for its turn. */
const waitMs = 25_000;

/**
 * Decides when a token may be looked up at its issuer. Anybody can make tokens up, so lookups of bad tokens stay few, whatever comes in:
 * tokens that were good before go first, the others take turns by address, and the rate grows with good answers only.
 */
export class IntrospectionGate {
  readonly #clock: Clock;
  readonly #known: Waiter[] = [];
  /** By address, the next one to have its turn first. */
  readonly #unknown = new Map<string | undefined, Waiter[]>();
  readonly #quota = new Quota<string | undefined>({ what: "tokens to look up", total: maxWaiting });
  #underway = 0;
  /** Lookups that may begin now, and when they were counted. */
  #credit = burst;
  #countedAt: number;
  /** Good answers of late, the older the less. */
  #good = 0;
  #stopTimer: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#countedAt = clock.now();
  }

  /** Whether a token that is known would have to wait. */
  get isBusy(): boolean {
    return this.#known.length > 0 || !this.#mayBegin(true);
  }

  /**
   * Looks a token up when it is its turn; `look` resolves with undefined for a token that is not good. Rejects with `IssuerUnavailable` when too
   * many tokens wait.
   */
  async run<T>(sender: TokenSender, look: () => Promise<T | undefined>): Promise<T | undefined> {
    await this.#waitForTurn(sender);
    try {
      const found = await look();
      if (found !== undefined) this.#good++;
      return found;
    } finally {
      this.#underway--;
      this.#beginNext();
    }
  }

  async #waitForTurn(sender: TokenSender): Promise<void> {
    const { isKnown, address } = sender;
    const isFirst = this.#known.length === 0 && (isKnown || this.#unknown.size === 0);
    if (isFirst && this.#mayBegin(isKnown)) return this.#begin();
    if (!isKnown && this.#quota.refusal(address) !== undefined) throw tooMany();
    const waiter: Waiter = {
      ...sender,
      turn: createDeferred(),
      stopTimer: this.#timer(waitMs, () => {
        this.#remove(waiter);
        waiter.turn.reject(tooMany());
      }),
    };
    if (isKnown) this.#known.push(waiter);
    else {
      this.#quota.add(address);
      const line = this.#unknown.get(address);
      if (line === undefined) this.#unknown.set(address, [waiter]);
      else line.push(waiter);
    }
    this.#beginNext();
    return waiter.turn.promise;
  }

  /** Begins the lookups whose turn it is, and comes back when the next one may begin. */
  #beginNext(): void {
    this.#stopTimer?.();
    this.#stopTimer = undefined;
    for (;;) {
      const next = this.#known[0] ?? this.#unknown.values().next().value?.[0];
      if (next === undefined) return;
      if (!this.#mayBegin(next.isKnown)) break;
      next.stopTimer();
      this.#remove(next);
      this.#begin();
      next.turn.resolve();
    }
    // Where all places are taken, the end of a lookup begins the next.
    if (this.#credit >= 1) return;
    this.#stopTimer = this.#timer(Math.ceil((1 - this.#credit) / this.#perMs), () => this.#beginNext());
  }

  #begin(): void {
    this.#underway++;
    this.#credit--;
  }

  /** An address that had its turn waits until all others had theirs. */
  #remove(waiter: Waiter): void {
    const { isKnown, address } = waiter;
    const line = isKnown ? this.#known : (this.#unknown.get(address) ?? []);
    line.splice(line.indexOf(waiter), 1);
    if (isKnown) return;
    this.#quota.give(address);
    this.#unknown.delete(address);
    if (line.length > 0) this.#unknown.set(address, line);
  }

  #mayBegin(isKnown: boolean): boolean {
    this.#count();
    return this.#credit >= 1 && this.#underway < (isKnown ? maxUnderway : maxUnknownUnderway);
  }

  #count(): void {
    const now = this.#clock.now();
    const passedMs = now - this.#countedAt;
    if (passedMs === 0) return;
    this.#credit = Math.min(burst, this.#credit + passedMs * this.#perMs);
    this.#good *= Math.exp(-passedMs / goodMs);
    this.#countedAt = now;
  }

  get #perMs(): number {
    return basePerS / 1000 + (2 * this.#good) / goodMs;
  }

  #timer(ms: number, callback: () => void): () => void {
    return this.#clock.idleTimer?.(ms, callback) ?? this.#clock.timer(ms, callback);
  }
}

function tooMany(): IssuerUnavailable {
  return new IssuerUnavailable("too many tokens wait to be looked up");
}
