import { type Clock, sleep } from "../../async/clock.ts";
import { createDeferred, type Deferred } from "../../async/deferred.ts";
import type { RawJson } from "../../json/raw.ts";
import {
  closedForm,
  isAcceptable,
  lacking,
  missingCapability,
  notOffered,
  toModernAsk,
  unanswered,
} from "../../mcp/question.ts";
import type { Ask } from "../../mcp/types.ts";
import { type CallContext, type CallEvent, withContext } from "../../tools/context.ts";
import type { Answers, InputRequired, Outcome } from "../../tools/provider.ts";
import { abandonedCall } from "./abandoned.ts";

/** A question a legacy server waits for. */
interface Question {
  readonly ask: Ask;
  readonly answer: Deferred<RawJson>;
}

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

/**
 * One call of a legacy server on behalf of a modern caller. The server waits in the middle of it for answers; the caller
 * does not: it gets the questions as a result, leaves, and comes back with the answers. The call runs once, whatever the
 * caller does.
 */
export class Flow {
  readonly server: string;
  readonly caller: string | undefined;
  readonly #options: FlowOptions;
  readonly #working = new AbortController();
  readonly #questions = new Map<string, Question>();
  /** Those who wait for the next questions or the end. */
  readonly #waiting = new Set<() => void>();
  /** The requests that are open now; the newest hears of progress. */
  readonly #open = new Set<CallContext>();
  #asked = 0;
  #end: End | undefined;

  constructor(server: string, caller: string | undefined, options: FlowOptions) {
    this.server = server;
    this.caller = caller;
    this.#options = options;
  }

  get isOver(): boolean {
    return this.#end !== undefined;
  }

  /** Whether somebody waits for what comes next. */
  get isAwaited(): boolean {
    return this.#open.size > 0;
  }

  /** Makes the call. Resolves with its outcome, or with the first questions, which `toState` completes. */
  start(invoke: Invoke, context: CallContext, toState: () => unknown): Promise<Outcome> {
    const inner = withContext(context, {
      signal: this.#working.signal,
      ask: (ask: Ask, signal: AbortSignal) => this.#ask(ask, context, signal),
      // Whoever comes back may want to hear of progress, though nobody did at first; a server can be told only now.
      wantsProgress: true,
      emit: async (event: CallEvent) => [...this.#open].at(-1)?.emit(event),
    });
    invoke(inner).then(
      (outcome) => this.#finish({ kind: "outcome", outcome }),
      (error: unknown) => this.#finish({ kind: "failed", error }),
    );
    return this.#next(context, toState);
  }

  /** Passes answers on, each once, and resolves with what comes next. What is missing or does not fit is asked again. */
  answer(answers: Answers, context: CallContext, toState: () => unknown): Promise<Outcome> {
    for (const [key, answer] of Object.entries(answers)) {
      const question = this.#questions.get(key);
      if (question === undefined || !isAcceptable(question.ask, answer)) continue;
      this.#questions.delete(key);
      question.answer.resolve(answer);
    }
    if (this.#questions.size > 0 && this.#end === undefined)
      return Promise.resolve(this.#toInputRequired(toState));
    return this.#next(context, toState);
  }

  /** Nobody will answer: the server is told so in the way it knows, and then that the call is given up. */
  async giveUp(reason: unknown): Promise<void> {
    for (const { ask, answer } of this.#questions.values()) {
      const closed = closedForm(ask);
      if (closed === undefined) answer.reject(unanswered(ask));
      else answer.resolve(closed);
    }
    this.#questions.clear();
    this.#end ??= { kind: "failed", error: abandonedCall(this.server, "it was given up") };
    // The answers leave before the cancellation does.
    await new Promise((resolve) => setImmediate(resolve));
    this.#working.abort(reason);
  }

  async #ask(ask: Ask, context: CallContext, signal: AbortSignal): Promise<RawJson> {
    const missing = lacking(ask, context.capabilities);
    if (missing !== undefined) {
      this.#finish({ kind: "failed", error: missingCapability(missing) });
      this.#working.abort(
        new DOMException("The server asked for what the caller does not offer", "AbortError"),
      );
      throw notOffered(ask, context.capabilities);
    }
    signal.throwIfAborted();
    const key = `ask-${++this.#asked}`;
    const answer = createDeferred<RawJson>();
    this.#questions.set(key, { ask: toModernAsk(ask), answer });
    const takeBack = (): void => {
      this.#questions.delete(key);
      answer.reject(signal.reason);
    };
    signal.addEventListener("abort", takeBack, { once: true });
    this.#wake();
    try {
      return await answer.promise;
    } finally {
      signal.removeEventListener("abort", takeBack);
    }
  }

  #finish(end: End): void {
    this.#end ??= end;
    // A server that ended its call waits for no answer, but what waits for one on our side must not stay behind.
    for (const { answer } of this.#questions.values())
      answer.reject(new DOMException("The call is over", "AbortError"));
    this.#questions.clear();
    this.#wake();
  }

  #wake(): void {
    for (const wake of this.#waiting) wake();
  }

  /** Waits for questions or the end. A caller that leaves while nobody else waits gives the call up. */
  async #next(context: CallContext, toState: () => unknown): Promise<Outcome> {
    const { clock, gatherMs } = this.#options;
    this.#open.add(context);
    try {
      while (this.#end === undefined && this.#questions.size === 0) await this.#changed(context.signal);
      // Questions often come in company; one round for all of them is kinder than one each.
      if (this.#end === undefined) await sleep(gatherMs, clock, context.signal);
    } catch (error) {
      this.#open.delete(context);
      if (this.#open.size === 0) void this.giveUp(context.signal.reason);
      throw error;
    } finally {
      this.#open.delete(context);
    }
    if (this.#end === undefined) {
      // All of them may have been withdrawn while the others were waited for.
      return this.#questions.size === 0 ? this.#next(context, toState) : this.#toInputRequired(toState);
    }
    if (this.#end.kind === "failed") throw this.#end.error;
    return this.#end.outcome;
  }

  #toInputRequired(toState: () => unknown): InputRequired {
    const asks = Object.fromEntries(Array.from(this.#questions, ([key, { ask }]) => [key, ask]));
    return { kind: "input_required", asks, state: toState(), keepsAnswers: false };
  }

  #changed(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        this.#waiting.delete(wake);
        signal.removeEventListener("abort", giveUp);
      };
      const wake = (): void => {
        leave();
        resolve();
      };
      const giveUp = (): void => {
        leave();
        reject(signal.reason);
      };
      if (signal.aborted) return reject(signal.reason);
      this.#waiting.add(wake);
      signal.addEventListener("abort", giveUp, { once: true });
    });
  }
}
