import { type Cancellation, type Clock, createDeferred, type Deferred } from "@junctor/core/async";
import { RpcError } from "@junctor/core/errors";
import type { RawJson } from "@junctor/core/json";
import { lacking, notOffered, type Question } from "@junctor/core/mcp";
import { type OpenCall, OpenCalls } from "./open-calls.ts";
import { QuestionHabits } from "./question-habits.ts";
import { QuestionTurns } from "./question-turns.ts";

/** How a call ended: the server answered it, it was never sent, or the server may still be at work on it. */
export type CallEnd = "answered" | "not_sent" | "given_up";

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
 * Finds the call a legacy server's question belongs to, where neither the question nor the stream it came on tells. A
 * question is held until one call is left that can have asked it: that call cannot end before it is answered, the others
 * do. So that this comes soon, calls that may ask take turns, and all others run beside them. A question that stays
 * ambiguous is refused to the server: it must never reach another caller.
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

  /** A call is about to be sent. A promise means that it waits for its turn; it rejects when the turn does not come. */
  enter(call: OpenCall, stop: Cancellation): Promise<void> | undefined {
    const turn = this.#turns.take(call, stop);
    if (turn !== undefined) return turn.then(() => this.#calls.add(call));
    this.#calls.add(call);
    return undefined;
  }

  /**
   * The same for a caller that can be asked nothing, and a request that is not known to ask. Gives the function to be called
   * when the call is over; undefined when the request may ask.
   */
  enterQuietly(about: string): ((isGivenUp: boolean) => void) | undefined {
    return this.#options.habits.mayAsk(about) ? undefined : this.#calls.addQuiet();
  }

  /** A call asked something on a stream of its own, which says whose the question is. */
  attributed(call: OpenCall): void {
    this.#turns.release(call);
  }

  /** A call is over. */
  leave(call: OpenCall, end: CallEnd): void {
    const { habits } = this.#options;
    this.#calls.delete(call, end, habits);
    if (end === "answered" && call.isSuspected !== true) habits.noteEnd(call.about, call.questions ?? 0);
    this.#ruleOut(call, end === "given_up");
    this.#turns.end(call);
  }

  /** Asks the caller of the call that asked. Rejects with an `RpcError` when that is not known in time. */
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
   * asked, but is not there to be answered.
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
    // The end of any other call says nothing of the held questions.
    if (isCandidate) this.#watchStuck(this.#held);
  }
}

/**
 * A deadlock is likely when as many questions are held as there are calls that can have asked them: each call waits for an answer,
 * so none ends, unless one of them has an open question that its caller may still answer. After 5 s all questions but the oldest are
 * refused, and the calls that asked them go on. Returns a function to be called whenever the held questions, their candidates or the
 * open questions change, which begins the 5 s anew.
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

/** Any of the suspects may have asked: it is not taken for one that asks nothing. */
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
