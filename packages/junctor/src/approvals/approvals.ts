import { randomBytes } from "node:crypto";
import {
  type Clock,
  createDeferred,
  type Deferred,
  systemClock,
  timedOut,
  waitFor,
} from "@junctor/core/async";
import { RpcError, ToolError } from "@junctor/core/errors";
import type { Seal } from "@junctor/core/mcp";
import type { ClusterStore } from "../cluster/index.ts";
import { KeptCalls } from "../once/index.ts";

/** A call that waits for the yes of the person who runs the gateway. */
export interface Approval {
  readonly id: string;
  /** A digest of all that the yes is for. */
  readonly digest: string;
  readonly method: string;
  readonly name: string;
  readonly server: string | undefined;
  readonly caller: string | undefined;
  /** As it will be sent, secrets hidden, on one line, cut where it is long. */
  readonly arguments: string;
  readonly argumentsDigest: string;
  readonly definition: string;
  /** The rule that asks: `rules[2]`. */
  readonly rule: string;
  /** Dates. */
  readonly askedAt: number;
  readonly expiresAt: number;
  /** How many equal calls wait. A yes is for this many. */
  readonly calls: number;
}

/** What happened to a call that a rule asks about; for the audit. */
export interface ApprovalEvent extends Pick<
  Approval,
  "id" | "name" | "server" | "caller" | "rule" | "argumentsDigest"
> {
  readonly kind: "asked" | "approved" | "denied" | "used";
  /** Who answered: `caller` or `operator`. */
  readonly by?: string | undefined;
}

/** Options of `Approvals`. */
export interface ApprovalsOptions {
  readonly clock?: Clock;
  /** Which answers were used. They must be kept longer than any question waits: two hours. */
  readonly uses?: KeptCalls;
  /** Whether `uses` outlives this process. If not, no answer from before its start counts. */
  readonly outlives?: boolean;
  /** The most calls that wait; 1,000. One caller may have 16 of them, and ask 60 times a minute. */
  readonly maxWaiting?: number;
  readonly onEvent?: (event: ApprovalEvent) => void;
  /** Tells the other replicas of questions and answers. */
  readonly shared?: { readonly store: ClusterStore; readonly seal: Seal } | undefined;
}

type Answer = "approved" | "denied";

interface Entry {
  approval: Approval;
  readonly answered: Deferred<Answer>;
  /** For how many calls it was approved; undefined while it waits. */
  answer: Answer | undefined;
}

const maxPerCaller = 16;
const maxAsksPerMinute = 60;
/** Longer than any question may wait. */
export const useMs: number = 2 * 3_600_000;
const newsKind = "approval";
const binding = "junctor: approvals of replicas";

/** The calls that wait for the yes of a person, and the answers that were used. */
export class Approvals {
  /** Differs from process to process, unless used answers outlive it. */
  readonly instance: string;
  readonly clock: Clock;
  readonly #options: ApprovalsOptions;
  readonly #uses: KeptCalls;
  readonly #entries = new Map<string, Entry>();
  readonly #asks = new Map<string | undefined, { since: number; count: number }>();

  constructor(options: ApprovalsOptions = {}) {
    const { clock = systemClock, uses = new KeptCalls({ keepMs: useMs, clock }) } = options;
    this.#options = options;
    this.#uses = uses;
    this.clock = clock;
    this.instance = options.outlives === true ? "kept" : randomBytes(9).toString("base64url");
    options.shared?.store.onNews((message) => this.#receive(message));
  }

  /** The calls that wait, oldest first. */
  list(): readonly Approval[] {
    this.#forgetOld();
    return [...this.#entries.values()].flatMap(({ answer, approval }) =>
      answer === undefined ? [approval] : [],
    );
  }

  report(event: ApprovalEvent): void {
    this.#options.onEvent?.(event);
  }

  /**
   * Counts a question to a caller.
   *
   * @throws RpcError when it asks too often, so that nobody learns to say yes without reading
   */
  countAsk(caller: string | undefined): void {
    const now = this.clock.now();
    for (const [each, { since }] of this.#asks) if (now - since >= 60_000) this.#asks.delete(each);
    const asks = this.#asks.get(caller) ?? { since: now, count: 0 };
    if (asks.count >= maxAsksPerMinute)
      throw tooMany("This caller asked for too many approvals in a minute", asks.since + 60_000 - now);
    asks.count++;
    this.#asks.set(caller, asks);
  }

  /** Makes a call wait for a yes, together with the equal calls that wait. Returns its place among them. */
  ask(facts: Omit<Approval, "id" | "askedAt" | "calls">): { readonly id: string; readonly place: number } {
    this.#forgetOld();
    const waiting = [...this.#entries.values()].filter(({ answer }) => answer === undefined);
    const equal = waiting.find(({ approval }) => approval.digest === facts.digest);
    if (equal !== undefined) {
      equal.approval = { ...equal.approval, calls: equal.approval.calls + 1 };
      this.#publish({ asked: equal.approval });
      return { id: equal.approval.id, place: equal.approval.calls };
    }
    const { maxWaiting = 1000 } = this.#options;
    const own = waiting.filter(({ approval }) => approval.caller === facts.caller).length;
    if (own >= maxPerCaller || waiting.length >= maxWaiting)
      throw tooMany("Too many calls wait for an approval", 10_000);
    const id = randomBytes(6).toString("hex");
    const approval = { ...facts, id, askedAt: this.clock.date(), calls: 1 };
    this.#add(approval);
    this.report({ kind: "asked", ...approval });
    this.#publish({ asked: approval });
    return { id, place: 1 };
  }

  /** Waits for the answer; undefined if it did not come in time. Throws if the question is not known. */
  async wait(id: string, place: number, ms: number, signal: AbortSignal): Promise<Answer | undefined> {
    const entry = this.#entries.get(id);
    if (entry === undefined)
      throw refused(
        "the question is not known any more: the gateway was restarted, or it is another one. Call again",
      );
    const leftMs = Math.max(0, entry.approval.expiresAt - this.clock.date());
    const answer =
      entry.answer ??
      (await waitFor(entry.answered.promise, { ms: Math.min(ms, leftMs), clock: this.clock, signal }));
    if (answer === timedOut) {
      if (this.clock.date() >= entry.approval.expiresAt) throw refused("nobody answered in time");
      return undefined;
    }
    if (answer === "approved" && place > entry.approval.calls)
      throw refused("the person agreed to fewer calls than there are");
    return answer;
  }

  /**
   * Answers a question, for `calls` equal ones: as many as the person saw.
   *
   * @throws ToolError for a question that does not wait
   */
  answer(id: string, answer: Answer, by: string, calls?: number): Approval {
    this.#forgetOld();
    const entry = this.#entries.get(id);
    if (entry === undefined || entry.answer !== undefined)
      throw new ToolError(`No call waits under ${JSON.stringify(id)}: it was answered, or its time is over`);
    const seen = Math.min(calls ?? entry.approval.calls, entry.approval.calls);
    this.#settle(entry, answer, seen);
    this.report({ kind: answer, by, ...entry.approval });
    this.#publish({ answered: { id, answer, calls: seen } });
    return entry.approval;
  }

  /** Uses an answer up, before its call is sent. Throws if it was used before. */
  async use(id: string, digest: string, owner: string | undefined): Promise<void> {
    const use = { id: `approval:${id}`, fingerprint: digest, owner };
    const earlier = await this.#uses.begin(use);
    if (earlier !== undefined) throw refused("the approval was used before, and is good for one call");
    await this.#uses.end(use.id, { kind: "dropped" });
  }

  /** Whether an earlier yes for an equal call still counts, for rules that allow that for a while. */
  isGood(digest: string): boolean {
    return (this.#goodUntil.get(digest) ?? 0) > this.clock.now();
  }

  keepGood(digest: string, goodMs: number): void {
    const now = this.clock.now();
    for (const [each, until] of this.#goodUntil) if (until <= now) this.#goodUntil.delete(each);
    if (goodMs > 0 && this.#goodUntil.size < 10_000) this.#goodUntil.set(digest, now + goodMs);
  }

  readonly #goodUntil = new Map<string, number>();

  #add(approval: Approval): void {
    const answered = createDeferred<Answer>();
    this.#entries.set(approval.id, { approval, answered, answer: undefined });
  }

  #settle(entry: Entry, answer: Answer, calls: number): void {
    entry.answer = answer;
    entry.approval = { ...entry.approval, calls };
    entry.answered.resolve(answer);
  }

  /** Forgets questions when they expire, and answers a minute later: calls come back for them. */
  #forgetOld(): void {
    const now = this.clock.date();
    for (const [id, { approval }] of this.#entries)
      if (approval.expiresAt + 60_000 <= now || (approval.expiresAt <= now && this.#isWaiting(id)))
        this.#entries.delete(id);
  }

  #isWaiting(id: string): boolean {
    return this.#entries.get(id)?.answer === undefined;
  }

  #publish(news: ApprovalNews): void {
    const { shared } = this.#options;
    if (shared === undefined) return;
    const token = shared.seal.seal({ ...news, from: this.#from }, binding, useMs);
    // A replica that misses it does not list the question; the call waits where it is.
    void shared.store.publish(JSON.stringify({ kind: newsKind, token })).catch(() => {});
  }

  readonly #from = randomBytes(6).toString("hex");

  #receive(message: string): void {
    const news = this.#open(message);
    if (news === undefined || news.from === this.#from) return;
    const { asked, answered } = news;
    if (asked !== undefined) {
      const known = this.#entries.get(asked.id);
      if (known === undefined) this.#add(asked);
      else if (known.answer === undefined) known.approval = asked;
    }
    const entry = answered && this.#entries.get(answered.id);
    if (answered !== undefined && entry !== undefined && entry.answer === undefined)
      this.#settle(entry, answered.answer, answered.calls);
  }

  #open(message: string): (ApprovalNews & { readonly from: string }) | undefined {
    try {
      const { kind, token } = Object(JSON.parse(message)) as {
        readonly kind?: unknown;
        readonly token?: unknown;
      };
      const opened =
        kind === newsKind && typeof token === "string"
          ? this.#options.shared?.seal.open(token, binding)
          : undefined;
      return opened?.ok === true ? (opened.payload as ApprovalNews & { readonly from: string }) : undefined;
    } catch {
      return undefined;
    }
  }
}

/** What replicas publish to each other. */
interface ApprovalNews {
  readonly asked?: Approval;
  readonly answered?: { readonly id: string; readonly answer: Answer; readonly calls: number };
}

function tooMany(why: string, retryAfterMs: number): RpcError {
  return new RpcError("rpc.too_many", `${why}. Nothing was sent`, {
    data: { code: "rpc.too_many", delivery: "not_sent", retryAfterMs },
  });
}

/** The error of a call that is not made; the model sees the reason. */
export function refused(why: string): ToolError {
  return new ToolError(`This call needs the approval of a person, and was not made: ${why}.`, {
    code: "tool.refused",
  });
}
