import type { Clock } from "@junctor/core/async";
import type { Vouched } from "./issuer.ts";

/** The verdict on a token. */
interface TokenVerdict {
  /** Undefined: the token was refused. */
  readonly vouched: Vouched | undefined;
  readonly reason: string;
  readonly until: number;
}

const maxGood = 10_000;
/** Few: unknown senders fill this part, and must not push out verdicts on callers. */
const maxBad = 1000;
const keepBadMs = 30_000;

/** The verdicts on tokens, by their hashes, each for as long as it is valid. Verifying a signature costs a hundred times as much. */
export class Verdicts {
  readonly #clock: Clock;
  readonly #good = new Map<string, TokenVerdict>();
  readonly #bad = new Map<string, TokenVerdict>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The verdict on a token, if there is one. */
  get(hash: string): TokenVerdict | undefined {
    const verdict = this.#good.get(hash) ?? this.#bad.get(hash);
    return verdict !== undefined && this.#clock.now() < verdict.until ? verdict : undefined;
  }

  /** The last good verdict on a token, however old it is, and whether it still counts while its issuer is busy. */
  lastGood(hash: string): { readonly vouched: Vouched; readonly countsWhileBusy: boolean } | undefined {
    const { vouched, until } = this.#good.get(hash) ?? {};
    if (vouched === undefined || until === undefined) return undefined;
    const busyUntil = until - vouched.keepMs + vouched.keepWhileBusyMs;
    return { vouched, countsWhileBusy: this.#clock.now() < busyUntil };
  }

  accept(hash: string, vouched: Vouched): void {
    this.#bad.delete(hash);
    const until = this.#clock.now() + vouched.keepMs;
    keep(this.#good, hash, { vouched, reason: "", until }, maxGood);
  }

  refuse(hash: string, reason: string): void {
    this.#good.delete(hash);
    keep(this.#bad, hash, { vouched: undefined, reason, until: this.#clock.now() + keepBadMs }, maxBad);
  }
}

/** The newest are kept. */
function keep(verdicts: Map<string, TokenVerdict>, hash: string, verdict: TokenVerdict, max: number): void {
  verdicts.delete(hash);
  verdicts.set(hash, verdict);
  const [oldest] = verdicts.keys();
  if (verdicts.size > max && oldest !== undefined) verdicts.delete(oldest);
}
