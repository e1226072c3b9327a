import { type Clock, sleep, waitFor, createDeferred, type Deferred } from "@junctor/core/async";
import type { RawJson } from "@junctor/core/json";
import {
  type Questions,
  closedForm,
  isAcceptable,
  lacking,
  missingAfter,
  notOffered,
  toModernQuestion,
  unanswered,
  type ClientCapabilities,
  type Question,
} from "@junctor/core/mcp";
import {
  type CallContext,
  type CallEvent,
  withContext,
  type Answers,
  type InputRequired,
  type Outcome,
} from "@junctor/core/provider";
import { abandonedCall } from "./abandoned.ts";

/** How a call that was parked ended. */
type End =
  | { readonly kind: "outcome"; readonly outcome: Outcome }
  | { readonly kind: "failed"; readonly error: unknown };

/** Makes the call that may have to be parked. */
export type Invoke = (context: CallContext) => Promise<Outcome>;

interface FlowOptions {
  readonly clock: Clock;
  /** How long a question waits for others that come with it. */
  readonly gatherMs: number;
}

/** A question a legacy server waits for. */
interface PendingQuestion {
  readonly ask: Question;
  readonly answer: Deferred<RawJson>;
}

/** The open questions of one call, by the keys that its caller knows them by. */
class PendingQuestions {
  readonly #options: FlowOptions;
  readonly #open = new Map<string, PendingQuestion>();
  #asked = 0;
  #isClosed = false;
  #changed = createDeferred<void>();

  constructor(options: FlowOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#open.size;
  }

  /** Adds a question and resolves with its answer. Aborting withdraws the question. */
  async put(ask: Question, signal: AbortSignal): Promise<RawJson> {
    signal.throwIfAborted();
    const key = `ask-${++this.#asked}`;
    const answer = createDeferred<RawJson>();
    this.#open.set(key, { ask: toModernQuestion(ask), answer });
    const withdraw = (): void => {
      this.#open.delete(key);
      answer.reject(signal.reason);
    };
    signal.addEventListener("abort", withdraw, { once: true });
    this.#wake();
    try {
      return await answer.promise;
    } finally {
      signal.removeEventListener("abort", withdraw);
    }
  }

  /** Passes answers on, each once. A question whose answer does not fit stays open. */
  answer(answers: Answers): void {
    for (const [key, answer] of Object.entries(answers)) {
      const question = this.#open.get(key);
      if (question === undefined || !isAcceptable(question.ask, answer)) continue;
      this.#open.delete(key);
      question.answer.resolve(answer);
    }
  }

  /** Settles all open questions. There will be no others. */
  close(settle: (question: PendingQuestion) => void): void {
    this.#isClosed = true;
    for (const question of this.#open.values()) settle(question);
    this.#open.clear();
    this.#wake();
  }

  /** Waits until there are questions or they are closed. Questions that come shortly after the first share its round. */
  async gather(signal: AbortSignal): Promise<void> {
    const { clock, gatherMs } = this.#options;
    // All of them may be withdrawn while others are waited for.
    do {
      while (!this.#isClosed && this.#open.size === 0) await waitFor(this.#changed.promise, { signal });
      if (!this.#isClosed) await sleep(gatherMs, clock, signal);
    } while (!this.#isClosed && this.#open.size === 0);
  }

  toAsks(): Questions {
    return Object.fromEntries(Array.from(this.#open, ([key, { ask }]) => [key, ask]));
  }

  #wake(): void {
    this.#changed.resolve();
    this.#changed = createDeferred();
  }
}

/**
 * One call of a legacy server on behalf of a modern caller. The server waits in the middle of it for answers; the caller
 * does not: it gets the questions as a result, leaves, and comes back with the answers. The call runs once, whatever the
 * caller does.
 */
export class Flow {
  readonly server: string;
  readonly caller: string | undefined;
  readonly #working = new AbortController();
  readonly questions: PendingQuestions;
  /** The requests that are open now; the newest hears of progress. */
  readonly #open = new Set<CallContext>();
  #end: End | undefined;
  /** The capabilities that the caller lacks for what was asked. */
  #lacks: ClientCapabilities | undefined;

  constructor(server: string, caller: string | undefined, options: FlowOptions) {
    this.server = server;
    this.caller = caller;
    this.questions = new PendingQuestions(options);
  }

  get isOver(): boolean {
    return this.#end !== undefined;
  }

  /** Whether a request of the caller waits for the next questions or the end. */
  get isAwaited(): boolean {
    return this.#open.size > 0;
  }

  /** Makes the call. Resolves with its outcome, or with the first questions, which `toState` completes. */
  start(invoke: Invoke, context: CallContext, toState: () => unknown): Promise<Outcome> {
    const inner = withContext(context, {
      signal: this.#working.signal,
      ask: (ask: Question, signal: AbortSignal) => this.#ask(ask, context, signal),
      // The request that brings the answers may want progress, though the first did not; only now can progress be asked of the server.
      wantsProgress: true,
      emit: async (event: CallEvent) => [...this.#open].at(-1)?.emit(event),
    });
    invoke(inner).then(
      (outcome) => this.#finish({ kind: "outcome", outcome }),
      (error: unknown) => this.#finish({ kind: "failed", error }),
    );
    return this.#next(context, toState);
  }

  /** Passes answers on and resolves with the next questions or the end. A question without a fitting answer is asked again. */
  async answer(answers: Answers, context: CallContext, toState: () => unknown): Promise<Outcome> {
    this.questions.answer(answers);
    return this.questions.size > 0 ? toInputRequired(this.questions, toState) : this.#next(context, toState);
  }

  /** The caller will not answer: the server gets the answer that its revision has for that, and then the call is cancelled. */
  async giveUp(reason: unknown): Promise<void> {
    this.#end ??= { kind: "failed", error: abandonedCall(this.server, "it was given up") };
    this.questions.close(({ ask, answer }) => {
      const closed = closedForm(ask);
      if (closed === undefined) answer.reject(unanswered(ask));
      else answer.resolve(closed);
    });
    // The answers leave before the cancellation does.
    await new Promise((resolve) => setImmediate(resolve));
    this.#working.abort(reason);
  }

  async #ask(ask: Question, context: CallContext, signal: AbortSignal): Promise<RawJson> {
    // The server decides what a missing answer means: many tools go on without it.
    const lacks = lacking(ask, context.capabilities);
    if (lacks === undefined) return this.questions.put(ask, signal);
    this.#lacks = lacks;
    throw notOffered(ask, context.capabilities);
  }

  #finish(end: End): void {
    this.#end ??= this.#toEnd(end);
    // A server that ended its call waits for no answer, but our side must not go on waiting for one.
    this.questions.close(({ answer }) => answer.reject(new DOMException("The call is over", "AbortError")));
  }

  /** A tool that failed after it could not ask tells its caller which capabilities it lacks. */
  #toEnd(end: End): End {
    const isComplete = end.kind === "outcome" && end.outcome.kind === "complete";
    const error =
      isComplete && this.#lacks !== undefined ? missingAfter(this.#lacks, end.outcome.result) : undefined;
    return error === undefined ? end : { kind: "failed", error };
  }

  /** Waits for questions or the end. A caller that leaves while none of its other requests waits gives the call up. */
  async #next(context: CallContext, toState: () => unknown): Promise<Outcome> {
    this.#open.add(context);
    try {
      await this.questions.gather(context.signal);
    } catch (error) {
      this.#open.delete(context);
      if (this.#open.size === 0) void this.giveUp(context.signal.reason);
      throw error;
    } finally {
      this.#open.delete(context);
    }
    if (this.#end === undefined) return toInputRequired(this.questions, toState);
    if (this.#end.kind === "failed") throw this.#end.error;
    return this.#end.outcome;
  }
}

function toInputRequired(questions: PendingQuestions, toState: () => unknown): InputRequired {
  return { kind: "input_required", asks: questions.toAsks(), state: toState(), keepsAnswers: false };
}
