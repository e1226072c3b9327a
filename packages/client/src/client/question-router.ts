import {
  type Cancellation,
  type Clock,
  createDeferred,
  type Deferred,
  awakeTimer,
  waitFor,
  Quota,
} from "@junctor/core/async";
import { RpcError, UpstreamError } from "@junctor/core/errors";
import type { RawJson } from "@junctor/core/json";
import {
  lacking,
  notOffered,
  type Question,
  closedForm,
  unanswered,
  type ClientCapabilities,
} from "@junctor/core/mcp";
import type { AskCaller } from "@junctor/core/provider";

/** How a call ended: the server answered it, it was never sent, or the server may still be at work on it. */
type CallEnd = "answered" | "not_sent" | "given_up";

interface QuestionRouterOptions {
  /** The name of the server, for messages to callers. */
  readonly server: string;
  readonly clock: Clock;
  readonly habits?: QuestionHabits | undefined;
  /** Called with the reason when a question of the server is refused. */
  readonly onRefused: (text: string) => void;
  /** How long a caller may take to answer while another call waits for its turn; 30 s. */
  readonly limits?: (() => { readonly answerWithinMs: number }) | undefined;
}

/** A question whose call is not known yet. */
interface AmbiguousQuestion {
  readonly candidates: Set<OpenCall>;
  /** Resolves with the call once only one can have asked. */
  readonly call: Deferred<OpenCall>;
}

/** How long a question is held until it is known whose it is. */
const maxHoldMs = 60_000;
/** How long questions are held when each candidate seems to wait for the answer to one of them. */
const maxStuckMs = 5000;
const maxHeld = 100;

/**
 * Finds the call that a legacy server's question belongs to, where neither the question nor its stream says so. A question is
 * held until one call is left that can have asked it: that call cannot end before it is answered, the others can. To make
 * this soon, calls that may ask take turns, and all others run beside them. A question that stays ambiguous is refused: it
 * must never reach another caller.
 */
export class QuestionRouter {
  readonly #options: Omit<QuestionRouterOptions, "habits"> & { readonly habits: QuestionHabits };
  readonly #turns: QuestionTurns;
  readonly #calls: OpenCalls;
  readonly #held = new Set<AmbiguousQuestion>();
  readonly #watchStuck: (all: ReadonlySet<AmbiguousQuestion>) => void;

  constructor(options: QuestionRouterOptions) {
    this.#options = { ...options, habits: options.habits ?? new QuestionHabits() };
    this.#calls = new OpenCalls(options.clock, (group, isGivenUp) => this.#ruleOut(group, isGivenUp));
    this.#turns = new QuestionTurns({
      ...this.#options,
      isAlone: (owner) => this.#calls.isAlone(owner),
      onAnswered: () => this.#watchStuck(this.#held),
    });
    this.#watchStuck = createStuckWatch(this.#options, (call) => this.#turns.isAsked(call));
  }

  /** Call it before a call is sent. A promise means that the call waits for its turn; it rejects when the turn does not come. */
  enter(call: OpenCall, stop: Cancellation): Promise<void> | undefined {
    const turn = this.#turns.take(call, stop);
    if (turn !== undefined) return turn.then(() => this.#calls.add(call));
    this.#calls.add(call);
    return undefined;
  }

  /**
   * The same for a caller that cannot be asked. Returns the function to call when the call is over; undefined when the
   * request may ask.
   */
  enterQuietly(about: string): ((isGivenUp: boolean) => void) | undefined {
    return this.#options.habits.mayAsk(about) ? undefined : this.#calls.addQuiet();
  }

  /** Takes a call that asked something on a stream of its own, which says whose the question is. */
  attributed(call: OpenCall): void {
    this.#turns.release(call);
  }

  /** Takes the end of a call. */
  leave(call: OpenCall, end: CallEnd): void {
    const { habits } = this.#options;
    this.#calls.delete(call, end, habits);
    if (end === "answered" && call.isSuspected !== true) habits.noteEnd(call.about, call.questions ?? 0);
    this.#ruleOut(call, end === "given_up");
    this.#turns.end(call);
  }

  /** Passes a question to the caller of the call that asked it. Rejects with an `RpcError` when that call is not known in time. */
  async ask(ask: Question, signal: AbortSignal): Promise<RawJson> {
    const call = await this.#find(ask, signal);
    call.questions = (call.questions ?? 0) + 1;
    if (call.about !== "")
      this.#options.habits.noteQuestion(call.about, call.questions, this.#turns.isAsked(call));
    if (call.ask === undefined) {
      call.lacks = lacking(ask, {});
      throw notOffered(ask, {});
    }
    return this.#turns.ask(call, call.ask, ask, signal);
  }

  async #find({ method }: Question, signal: AbortSignal): Promise<OpenCall> {
    const candidates = this.#calls.candidates();
    const [only, ...others] = candidates;
    // A late question may reach only the caller that gave the call up, and only in a call that may ask.
    if (this.#calls.isDoubtful(this.#options.habits))
      throw refusal(`${method} may belong to a call that is over`, this.#options, candidates);
    if (only === undefined) {
      const text = `${method} belongs to no call that is underway`;
      if (this.#calls.hasEndedLately && method !== "roots/list") this.#options.habits.noteAskedAfterEnd();
      // Many servers ask for roots when they start, and go on without an answer.
      throw method === "roots/list" ? new RpcError("rpc.invalid_params", text) : refusal(text, this.#options);
    }
    if (others.length === 0 || candidates.every((call) => call.ask === undefined)) return only;
    if (this.#held.size >= maxHeld) throw refusal(several(method), this.#options, candidates);
    return this.#hold(candidates, method, signal);
  }

  /** Waits until one call is left that can have asked. */
  async #hold(candidates: readonly OpenCall[], method: string, signal: AbortSignal): Promise<OpenCall> {
    const held: AmbiguousQuestion = { candidates: new Set(candidates), call: createDeferred<OpenCall>() };
    this.#held.add(held);
    this.#watchStuck(this.#held);
    const release = this.#turns.hold(held.candidates);
    const refuse = (): void => held.call.reject(refusal(several(method), this.#options, held.candidates));
    const stopTimer = this.#options.clock.timer(maxHoldMs, refuse);
    const withdraw = (): void => held.call.reject(signal.reason);
    signal.addEventListener("abort", withdraw, { once: true });
    if (signal.aborted) withdraw();
    try {
      return await held.call.promise;
    } finally {
      stopTimer();
      signal.removeEventListener("abort", withdraw);
      this.#held.delete(held);
      this.#watchStuck(this.#held);
      release();
    }
  }

  /**
   * A call that is over asks nothing more, so each held question has one candidate less. A call that was given up can have
   * asked, but cannot be answered any more.
   */
  #ruleOut(call: OpenCall, isGivenUp: boolean): void {
    const { habits } = this.#options;
    let isCandidate = false;
    for (const { candidates, call: found } of this.#held) {
      if (!candidates.delete(call)) continue;
      isCandidate = true;
      const [only, ...others] = candidates;
      const left = [...candidates];
      const isDoubtful =
        left.some(({ owner }) => owner !== call.owner) ||
        (habits.mayAsk(call.about) && !left.some(({ about }) => habits.mayAsk(about)));
      if (isGivenUp && isDoubtful)
        found.reject(refusal("The question may belong to a call that was given up", this.#options, left));
      else if (only === undefined)
        found.reject(refusal("Every call that can have asked the question is over", this.#options));
      else if (others.length === 0) found.resolve(only);
    }
    // The end of any other call says nothing about the held questions.
    if (isCandidate) this.#watchStuck(this.#held);
  }
}

/**
 * A deadlock is likely when as many questions are held as there are calls that can have asked them: each call waits for an answer,
 * so none ends, unless one of them has an open question that its caller may still answer. After 5 s all questions but the oldest are
 * refused, and the calls that asked them go on. Call the returned function whenever the held questions, their candidates or the
 * open questions change: it restarts the 5 s.
 */
function createStuckWatch(
  options: QuestionRouterOptions,
  isAsked: (call: OpenCall) => boolean,
): (all: ReadonlySet<AmbiguousQuestion>) => void {
  let stop = (): void => {};
  return (all) => {
    stop();
    const [, ...others] = all;
    const candidates = new Set([...all].flatMap((held) => [...held.candidates]));
    if (others.length === 0 || candidates.size > all.size || [...candidates].some(isAsked)) return;
    const text = `${candidates.size} calls each wait for the answer to a question, and no question says whose it is`;
    stop = options.clock.timer(maxStuckMs, () => {
      for (const held of others) held.call.reject(refusal(text, options, held.candidates));
    });
  };
}

/** The error for a refused question. Any of the suspects may have asked it, so none of them counts as a call that asks nothing. */
function refusal(
  text: string,
  { server, onRefused }: QuestionRouterOptions,
  suspects: Iterable<OpenCall> = [],
): RpcError {
  for (const call of suspects) call.isSuspected = true;
  onRefused(`A question of ${server} was refused: ${text}`);
  return new RpcError("rpc.invalid_params", text);
}

function several(method: string): string {
  return `There are several calls it can be for, and ${method} does not say which`;
}

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

/** The time, while others wait, of a caller that left a question unanswered lately. Each further one halves it, down to `leastMs`. */
const repeatedMs = 5000;
const leastMs = 1000;
const usualLimits = { answerWithinMs: 30_000 };
/** The last part of a caller's time is for the server: it learns that no answer will come, and may end the call by itself. */
const maxGraceMs = 1000;

/**
 * Lets one call that may ask run at a time, and none while a question is held. Calls that do not ask need no turn. Callers come one
 * after the other, however many calls each has waiting, and none may keep the others waiting with a question it does not answer.
 *
 * A call that waits for the answer to the only question it is known to ask cannot end, and is not expected to ask again: it passes its
 * turn on. If the next call asks something too, its question is held until one of the two is over.
 */
class QuestionTurns {
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
  /** Until when messages that a call sent at its end may still arrive, and whose call it was. */
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

  /** Ends the turn of a call that needs none, because it asks on a stream of its own. */
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

  /** Stops new turns until the returned function is called: one of these calls asked something. */
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
   * Asks the caller of a call. While other calls wait, its time is limited. When the time is over, the server gets the answer that
   * its revision has for that case. If it does not end the call soon, the call is given up.
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

  /** Whether a call that may ask may begin. */
  #isFreeFor({ owner }: OpenCall): boolean {
    if (this.#holds.size > 0 || ![...this.#loud].every((call) => this.#isPaused(call))) return false;
    const { clock, isAlone } = this.#options;
    const isSettled = this.#settles === undefined || clock.now() >= this.#settles.until;
    return isSettled || (this.#settles?.owner === owner && isAlone(owner));
  }

  /** Whether a call waits for an answer and is not expected to ask anything else. */
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
      // Most servers never ask, and their callers must not wait for each other for long. The first question of a server may
      // have come while this process was stopped, so only the time counts in which this process was awake.
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

  /** Sets the time of every caller that has a question to answer. */
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

  /** How long the caller of a call may take to answer; without limit while no other call waits for the end of its call. */
  #withinMs(call: OpenCall): number {
    const { habits, clock, limits } = this.#options;
    const { answerWithinMs } = limits?.() ?? usualLimits;
    const { owner, holder } = call;
    const waiting = this.#waitingFor(call);
    // Calls of the same session may wait for its user. Callers without a session may be several programs with one name.
    const isOwnSession = (other: OpenCall): boolean => typeof owner === "object" && other.owner === owner;
    const others = waiting.some((other) => other.holder !== holder);
    const waits = others || waiting.some((other) => !isOwnSession(other));
    if (!waits) return Infinity;
    const count = others ? habits.unansweredBy(holder, clock.now()) : 0;
    if (count === 0) return answerWithinMs;
    return Math.min(answerWithinMs, Math.max(leastMs, repeatedMs / 2 ** (count - 1)));
  }

  /** The calls that wait for the end of a call: calls without a turn, and calls that may have asked a held question. */
  #waitingFor(call: OpenCall): readonly OpenCall[] {
    const held = [...this.#holds]
      .map((candidates) => [...candidates])
      .filter((calls) => calls.includes(call));
    const asking = held.flat().filter((other) => other !== call && this.#options.habits.mayAsk(other.about));
    if (held.length === 0 && this.#isPaused(call)) return asking;
    const turns = [...this.#queue.values()].flatMap((waiting) => Array.from(waiting, (turn) => turn.call));
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

/** The answer to a server whose question nobody answers. */
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

/** A call that is underway, as far as questions are concerned. */
export interface OpenCall {
  /** What it requests, such as the name of a tool. */
  readonly about: string;
  /** Whose call it is: a session or the name of a caller. */
  readonly owner: unknown;
  /** Whose share of the turns it takes: the name of the caller, else its session. */
  readonly holder?: unknown;
  /** Asks its caller; undefined for a caller that cannot be asked. */
  readonly ask: AskCaller | undefined;
  /** How many questions it asked so far. */
  questions?: number;
  /** Whether a question was refused that it may have asked. */
  isSuspected?: boolean;
  /** Cancels it on the server, and fails it with this error. */
  readonly giveUp?: (error: Error) => void;
  /** The capabilities that its caller lacks for the question. */
  lacks?: ClientCapabilities | undefined;
}

/**
 * Calls that are not known to ask, of callers that cannot be asked. They are only counted, because a question of any of them
 * gets the same answer. Each question begins a new group, so that it waits only for calls that began before it.
 */
interface QuietGroup extends OpenCall {
  count: number;
  readonly leave: (isGivenUp: boolean) => void;
}

/** A call that is over, for which its server may still ask something until `until`. */
interface Ghost {
  readonly about: string;
  readonly owner: unknown;
  readonly until: number;
  /** Whether its result came: then it can only have asked right after that. */
  readonly isAnswered: boolean;
}

/** How long a call may still ask after it was given up, or after its end if the server was seen to ask after an end. */
const ghostMs = 60_000;
/** How long a call that may ask can still ask after its end: messages sent right after the result are still on their way. */
const settleMs = 20;
const maxGhosts = 1000;

/** The calls that can ask something: those that are underway, and those that were given up a short time ago. */
class OpenCalls {
  readonly #clock: Clock;
  readonly #onGroupOver: (group: OpenCall, isGivenUp: boolean) => void;
  readonly #calls = new Set<OpenCall>();
  /** The group that calls join now. */
  #group: QuietGroup = this.#createGroup();
  /** Earlier groups that have not ended. */
  readonly #groups = new Set<QuietGroup>();
  #ghosts: readonly Ghost[] = [];
  #endedAt = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock, onGroupOver: (group: OpenCall, isGivenUp: boolean) => void) {
    this.#clock = clock;
    this.#onGroupOver = onGroupOver;
  }

  add(call: OpenCall): void {
    this.#calls.add(call);
  }

  /** Adds a call to the quiet group. Returns the function to call when the call is over. */
  addQuiet(): (isGivenUp: boolean) => void {
    this.#group.count++;
    return this.#group.leave;
  }

  /** Takes the end of a call. */
  delete(call: OpenCall, end: CallEnd, habits: QuestionHabits): void {
    this.#calls.delete(call);
    if (end === "not_sent") return;
    const isAnswered = end === "answered";
    if (!isAnswered || habits.hasAskedAfterEnd) this.#addGhost(call, ghostMs, isAnswered);
    else if (call.isSuspected === true || (habits.mayAsk(call.about) && !hasAskedAll(call, habits)))
      this.#addGhost(call, settleMs, isAnswered);
    this.#endedAt = this.#clock.now();
  }

  /** Whether a call ended a short time ago. */
  get hasEndedLately(): boolean {
    return this.#clock.now() - this.#endedAt < ghostMs;
  }

  /** Whether no other caller has a call underway. */
  isAlone(owner: unknown): boolean {
    return [...this.#calls].every((call) => call.owner === owner);
  }

  /** The calls that can have asked a question that comes now. */
  candidates(): readonly OpenCall[] {
    if (this.#group.count > 0) {
      this.#groups.add(this.#group);
      this.#group = this.#createGroup();
    }
    return [...this.#calls, ...this.#groups];
  }

  /**
   * Whether a question that comes now may belong to a call that is over: if a call of another caller is underway, or if the
   * call that is over may ask and all calls underway are of quiet tools. Notes that a tool whose result came right before the
   * question may ask more than once.
   */
  isDoubtful(habits: QuestionHabits): boolean {
    const now = this.#clock.now();
    this.#ghosts = this.#ghosts.filter(({ until }) => until > now);
    if (this.#ghosts.length === 0) return false;
    for (const { about, isAnswered } of this.#ghosts) if (isAnswered) habits.noteAskedMore(about);
    const calls = [...this.#calls];
    const isAsking = calls.some(({ about }) => habits.mayAsk(about));
    return this.#ghosts.some(
      (ghost) =>
        calls.some(({ owner }) => owner !== ghost.owner) ||
        (calls.length > 0 && !isAsking && habits.mayAsk(ghost.about)),
    );
  }

  #addGhost({ about, owner }: Pick<OpenCall, "about" | "owner">, ms: number, isAnswered: boolean): void {
    const isSame = (ghost: Ghost): boolean =>
      ghost.owner === owner && ghost.about === about && ghost.isAnswered === isAnswered;
    const others = this.#ghosts.filter((ghost) => !isSame(ghost)).slice(-maxGhosts);
    const until = Math.max(
      this.#clock.now() + ms,
      ...this.#ghosts.filter(isSame).map((ghost) => ghost.until),
    );
    this.#ghosts = [...others, { about, owner, until, isAnswered }];
  }

  #createGroup(): QuietGroup {
    let hasGivenUp = false;
    const group: QuietGroup = {
      about: "",
      owner: undefined,
      ask: undefined,
      count: 0,
      leave: (isGivenUp) => {
        // No caller is its owner: the caller that gave it up cannot be asked.
        if (isGivenUp) this.#addGhost({ about: group.about, owner: group }, ghostMs, false);
        hasGivenUp ||= isGivenUp;
        if (--group.count === 0 && this.#groups.delete(group)) this.#onGroupOver(group, hasGivenUp);
      },
    };
    return group;
  }
}

/** Whether a call asked the one question that its tool is known to ask. */
function hasAskedAll({ about, questions }: OpenCall, habits: QuestionHabits): boolean {
  return questions === 1 && habits.asksOnce(about);
}

/** The most requests of each sort that are remembered; a server that keeps inventing names gains nothing. */
const maxRemembered = 10_000;

/** How long after its last unanswered question a caller counts as one that answers again. */
const forgivenMs = 10 * 60_000;

/** How a server asks questions, and which callers left them unanswered. Shared by all connections to the server. */
export class QuestionHabits {
  readonly #asking = new Set<string>();
  /** The protocol lets a server ask during `tools/call`, `prompts/get` and `resources/read`. Quiet calls together have no name. */
  readonly #quiet = new Set<string>(["completion/complete", ""]);
  /** Requests whose calls asked one question each, so far. */
  readonly #askingOnce = new Set<string>();
  /** Requests of which a call asked more than one question. */
  readonly #askingMore = new Set<string>();
  /** Whether a call asked something while another question of the same call was open. */
  #hasAskedTogether = false;
  #hasAskedAfterEnd = false;
  /** By holder of calls, the one noted longest ago first. */
  readonly #unanswered = new Map<unknown, { readonly count: number; readonly until: number }>();

  readonly #onFirstAsked: () => void;

  constructor(onFirstAsked: () => void = () => {}) {
    this.#onFirstAsked = onFirstAsked;
  }

  /** Whether the server ever asked anything. */
  get hasAsked(): boolean {
    return this.#asking.size > 0;
  }

  /** Whether a request of this kind may ask: it did before, or it never ended without asking. */
  mayAsk(about: string): boolean {
    return !this.#quiet.has(about);
  }

  noteAsked(about: string): void {
    this.#quiet.delete(about);
    if (!this.hasAsked) this.#onFirstAsked();
    if (this.#asking.size < maxRemembered) this.#asking.add(about);
  }

  /** Whether a call of this kind that asked its question is not expected to ask another. */
  asksOnce(about: string): boolean {
    return this.#askingOnce.has(about) && !this.#hasAskedTogether;
  }

  /** Whether the server ever asked something while no call that can have asked it was underway. */
  get hasAskedAfterEnd(): boolean {
    return this.#hasAskedAfterEnd;
  }

  /** Notes the nth question of a call. `isTogether`: another question of the call was open. */
  noteQuestion(about: string, count: number, isTogether: boolean): void {
    this.noteAsked(about);
    this.#hasAskedTogether ||= isTogether;
    if (count > 1) this.noteAskedMore(about);
  }

  /** Notes that a call of this kind asked, or may have asked, more than one question. */
  noteAskedMore(about: string): void {
    this.#askingOnce.delete(about);
    if (this.#askingMore.size < maxRemembered) this.#askingMore.add(about);
  }

  /** Notes the end of a call, and how many questions it asked. */
  noteEnd(about: string, questions: number): void {
    if (questions === 0) this.noteQuiet(about);
    if (questions === 1 && !this.#askingMore.has(about) && this.#askingOnce.size < maxRemembered)
      this.#askingOnce.add(about);
  }

  noteAskedAfterEnd(): void {
    this.#hasAskedAfterEnd = true;
  }

  /** Notes that a request of this kind asked nothing. A kind that ever asked is never taken for quiet again. */
  noteQuiet(about: string): void {
    if (!this.#asking.has(about) && this.#quiet.size < maxRemembered) this.#quiet.add(about);
  }

  /** How many questions a caller left unanswered lately while others waited for it. */
  unansweredBy(holder: unknown, now: number): number {
    const { count, until } = this.#unanswered.get(holder) ?? { count: 0, until: 0 };
    return now < until ? count : 0;
  }

  noteUnanswered(holder: unknown, now: number): void {
    const count = this.unansweredBy(holder, now) + 1;
    this.#unanswered.delete(holder); // So that it counts as new.
    this.#unanswered.set(holder, { count, until: now + forgivenMs });
    for (const [oldest, { until }] of this.#unanswered) {
      if (now < until && this.#unanswered.size <= maxRemembered) break;
      this.#unanswered.delete(oldest);
    }
  }
}
