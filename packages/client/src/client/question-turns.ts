import { type Cancellation, awakeTimer, type Clock, waitFor, Quota } from "@junctor/core/async";
import { UpstreamError } from "@junctor/core/errors";
import type { RawJson } from "@junctor/core/json";
import { closedForm, unanswered, type Question } from "@junctor/core/mcp";
import type { AskCaller } from "@junctor/core/provider";
import { type OpenCall, settleMs } from "./open-calls.ts";
import type { QuestionHabits } from "./question-habits.ts";

interface QuestionTurnsOptions {
  /** The name of the server, for messages to callers. */
  readonly server: string;
  readonly clock: Clock;
  readonly habits: QuestionHabits;
  /** How long a caller may take to answer while another call waits for it; 30 s. */
  readonly limits?: (() => { readonly answerWithinMs: number }) | undefined;
  /** Whether no other caller has a call underway. */
  readonly isAlone: (owner: unknown) => boolean;
  /** Called when a question was answered, or will not be. */
  readonly onAnswered: () => void;
}

/** A call that waits for its turn. */
interface WaitingTurn {
  readonly call: OpenCall;
  readonly begin: () => void;
}

/** A question that its caller has not answered yet. */
interface OpenQuestion {
  readonly call: OpenCall;
  readonly askedAt: number;
  readonly withdraw: () => void;
  stopTimer: () => void;
}

/** How long a call of an unknown kind waits for others of an unknown kind, at a server that never asked anything. */
const trialMs = 2000;
/** How long a call waits for its turn. */
const maxWaitMs = 60_000;
const maxWaiting = 1000;

/** How long a caller may take that left a question unanswered lately, while others wait. Each further one halves it, down to the least. */
const repeatedMs = 5000;
const leastMs = 1000;
const usualLimits = { answerWithinMs: 30_000 };
/** The last part of a caller's time is for the server: it hears that no answer will come, and may end the call by itself. */
const maxGraceMs = 1000;

/**
 * Lets one call that may ask run at a time, and none while a question is held. Calls that do not ask need no turn. Callers come one
 * after the other, however many calls each has waiting, and none may keep the others waiting with a question it does not answer.
 *
 * A call that waits for the answer to the only question it is known to ask cannot end, and is expected to ask nothing: it gives its turn
 * to the next. If that one asks something too, its question is held until one of both is over.
 */
export class QuestionTurns {
  readonly #options: QuestionTurnsOptions;
  /** The calls underway that may ask. After a trial there are several. */
  readonly #loud = new Set<OpenCall>();
  /** The waiting calls of each holder, in the order in which the holders have their turns. */
  readonly #queue = new Map<unknown, Set<WaitingTurn>>();
  #lastHolder: unknown;
  readonly #waiting = new Quota({ what: "calls waiting for a turn", total: maxWaiting });
  readonly #questions = new Set<OpenQuestion>();
  #stopServing = (): void => {};
  /** The calls that left a question unanswered for too long, and what stops the timer that gives each of them up. */
  readonly #late = new Map<OpenCall, () => void>();
  /** The calls that can have asked each question that is held. */
  readonly #holds = new Set<Iterable<OpenCall>>();
  /** Until when what a call sent at its end may still be on the way, and whose call it was. */
  #settles: { readonly until: number; readonly owner: unknown } | undefined;

  constructor(options: QuestionTurnsOptions) {
    this.#options = options;
  }

  /** Begins a call's turn. A promise means that the call waits for it; it rejects when the turn does not come. */
  take(call: OpenCall, stop: Cancellation): Promise<void> | undefined {
    const isLoud = this.#options.habits.mayAsk(call.about);
    if (isLoud && (this.#queue.size > 0 || !this.#isFreeFor(call))) return this.#wait(call, stop);
    if (isLoud) this.#begin(call);
    return undefined;
  }

  /** A call is known not to need a turn: it asks on a stream of its own. */
  release(call: OpenCall): void {
    if (!this.#loud.has(call)) return;
    this.#options.habits.noteQuiet(call.about);
    if (!this.#options.habits.mayAsk(call.about)) this.#loud.delete(call);
    this.#serve();
  }

  end(call: OpenCall): void {
    this.#late.get(call)?.();
    this.#late.delete(call);
    if (this.#loud.delete(call)) {
      this.#settles = { until: this.#options.clock.now() + settleMs, owner: call.owner };
    }
    this.#serve();
  }

  /** Begins no turn until the returned function is called: one of these calls asked something. */
  hold(candidates: Iterable<OpenCall>): () => void {
    this.#holds.add(candidates);
    this.#hurry();
    return () => {
      this.#holds.delete(candidates);
      this.#serve();
      this.#hurry();
    };
  }

  /**
   * Asks the caller of a call. While other calls wait, the caller has limited time. When it is over the server gets the answer that
   * its revision has for that, and if it does not end the call soon, the call is given up.
   */
  async ask(call: OpenCall, asker: AskCaller, ask: Question, signal: AbortSignal): Promise<RawJson> {
    if (this.#late.has(call)) return answerClosed(ask);
    const late = new AbortController();
    const question: OpenQuestion = {
      call,
      askedAt: this.#options.clock.now(),
      withdraw: () => late.abort(new DOMException("The question was not answered in time", "AbortError")),
      stopTimer: () => {},
    };
    this.#questions.add(question);
    this.#serve();
    this.#hurry();
    try {
      const answer = asker(ask, AbortSignal.any([signal, late.signal]));
      return await waitFor(answer, { signal: late.signal });
    } catch (error) {
      if (!late.signal.aborted) throw error;
      return answerClosed(ask);
    } finally {
      question.stopTimer();
      this.#questions.delete(question);
      this.#options.onAnswered();
    }
  }

  /** Whether a question of a call waits for its answer. */
  isAsked(call: OpenCall): boolean {
    return [...this.#questions].some((question) => question.call === call);
  }

  /** Whether a call may begin that may ask. */
  #isFreeFor({ owner }: OpenCall): boolean {
    if (this.#holds.size > 0 || ![...this.#loud].every((call) => this.#isPaused(call))) return false;
    const { clock, isAlone } = this.#options;
    const isSettled = this.#settles === undefined || clock.now() >= this.#settles.until;
    return isSettled || (this.#settles?.owner === owner && isAlone(owner));
  }

  /** Whether a call waits for an answer and will most likely ask nothing else. */
  #isPaused(call: OpenCall): boolean {
    return this.isAsked(call) && call.questions === 1 && this.#options.habits.asksOnce(call.about);
  }

  #begin(call: OpenCall): void {
    this.#loud.add(call);
    this.#lastHolder = call.holder;
  }

  #serve(): void {
    const { habits } = this.#options;
    for (const turns of this.#queue.values())
      for (const { call, begin } of turns) if (!habits.mayAsk(call.about)) begin();
    // The holder that had the last turn comes after all others.
    const lastTurns = this.#queue.get(this.#lastHolder);
    if (lastTurns !== undefined && this.#queue.delete(this.#lastHolder))
      this.#queue.set(this.#lastHolder, lastTurns);
    const [turns] = this.#queue.values();
    const [next] = turns ?? [];
    if (next === undefined) return;
    if (this.#isFreeFor(next.call)) return next.begin();
    const leftMs = (this.#settles?.until ?? 0) - this.#options.clock.now();
    this.#stopServing();
    if (leftMs > 0) this.#stopServing = this.#options.clock.timer(leftMs, () => this.#serve());
  }

  #wait(call: OpenCall, stop: Cancellation): Promise<void> {
    const { server, clock, habits } = this.#options;
    if (this.#waiting.refusal(call.holder) !== undefined)
      return Promise.reject(
        busy(server, `has more calls waiting than it may (${maxWaiting} for all callers)`),
      );
    return new Promise((resolve, reject) => {
      const end = (settle: () => void): void => {
        stopTimer();
        stopTrial();
        stop.offAbort(giveUp);
        this.#leaveQueue(waiting);
        settle();
      };
      const begin = (): void => {
        if (habits.mayAsk(call.about)) this.#begin(call);
        end(resolve);
      };
      const waiting: WaitingTurn = { call, begin };
      const giveUp = (): void => end(() => reject(stop.reason));
      const stopTimer = clock.timer(maxWaitMs, () => {
        const text = `is busy with a call that may ask its caller something, and it did not end within ${maxWaitMs} ms`;
        end(() => reject(busy(server, text)));
      });
      // Most servers never ask; callers of one of those must not wait for each other for long. The first question of a
      // server may have come while this process was stopped, so only time counts in which it was awake to read it.
      const stopTrial = awakeTimer(clock, trialMs, () => {
        if (!habits.hasAsked && this.#holds.size === 0) begin();
      });
      this.#joinQueue(waiting);
      if (stop.isAborted) giveUp();
      else stop.onAbort(giveUp);
      this.#serve();
    });
  }

  #joinQueue(turn: WaitingTurn): void {
    const { holder } = turn.call;
    const turns = this.#queue.get(holder) ?? new Set();
    turns.add(turn);
    this.#queue.set(holder, turns);
    this.#waiting.add(holder);
    this.#hurry();
  }

  #leaveQueue(turn: WaitingTurn): void {
    const { holder } = turn.call;
    const turns = this.#queue.get(holder);
    turns?.delete(turn);
    if (turns?.size === 0) this.#queue.delete(holder);
    this.#waiting.give(holder);
    this.#hurry();
  }

  /** Gives the callers that have a question to answer the time they have now. */
  #hurry(): void {
    const { clock } = this.#options;
    for (const question of this.#questions) {
      question.stopTimer();
      const withinMs = this.#withinMs(question.call);
      const graceMs = Math.min(maxGraceMs, withinMs / 5);
      const leftMs = question.askedAt + withinMs - graceMs - clock.now();
      question.stopTimer =
        withinMs === Infinity
          ? () => {}
          : clock.timer(Math.max(0, leftMs), () => this.#endLate(question, graceMs));
    }
  }

  /** How long the caller of a call may take to answer: as long as it likes while nobody waits for the end of its call. */
  #withinMs(call: OpenCall): number {
    const { habits, clock, limits } = this.#options;
    const { answerWithinMs } = limits?.() ?? usualLimits;
    const { owner, holder } = call;
    const waiting = this.#waitingFor(call);
    // The calls of one session may wait for its user. Callers without a session may be several programs with one name.
    const isOwnSession = (other: OpenCall): boolean => typeof owner === "object" && other.owner === owner;
    const others = waiting.some((other) => other.holder !== holder);
    const waits = others || waiting.some((other) => !isOwnSession(other));
    if (!waits) return Infinity;
    const count = others ? habits.unansweredBy(holder, clock.now()) : 0;
    if (count === 0) return answerWithinMs;
    return Math.min(answerWithinMs, Math.max(leastMs, repeatedMs / 2 ** (count - 1)));
  }

  /** The calls that wait for the end of a call: those without a turn, and those that may have asked a question that is held. */
  #waitingFor(call: OpenCall): readonly OpenCall[] {
    const held = [...this.#holds].map((candidates) => [...candidates]).filter((each) => each.includes(call));
    const asking = held.flat().filter((each) => each !== call && this.#options.habits.mayAsk(each.about));
    if (held.length === 0 && this.#isPaused(call)) return asking;
    const turns = [...this.#queue.values()].flatMap((each) => Array.from(each, (turn) => turn.call));
    return [...turns, ...asking];
  }

  #endLate({ call, withdraw }: OpenQuestion, graceMs: number): void {
    const { clock, habits, server } = this.#options;
    if (!this.#late.has(call)) {
      habits.noteUnanswered(call.holder, clock.now());
      this.#late.set(
        call,
        clock.timer(graceMs, () => call.giveUp?.(tooLate(server))),
      );
    }
    withdraw();
  }
}

/** What a server hears whose question nobody answers. */
function answerClosed(ask: Question): RawJson {
  const closed = closedForm(ask);
  if (closed === undefined) throw unanswered(ask);
  return closed;
}

function tooLate(server: string): UpstreamError {
  const text =
    `${server} asked something, and the answer did not come in time while other calls waited. The call was cancelled, and ` +
    "whether it was carried out is unknown.";
  return new UpstreamError("abandoned", text, { server, delivery: "outcome_unknown" });
}

function busy(server: string, why: string): UpstreamError {
  return new UpstreamError("busy", `${server} ${why}; this one was not sent.`, {
    server,
    delivery: "not_sent",
  });
}
