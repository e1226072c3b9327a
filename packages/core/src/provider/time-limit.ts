import { type Cancellation, type Clock, LazyAbort } from "../async/index.ts";
import { TimeoutError } from "../errors/index.ts";
import { type AskCaller, type CallContext, type CallEvent, withContext } from "./context.ts";
import type { Outcome } from "./provider.ts";

/** Changes an event on its way to the caller, or drops it. */
type MapEvent = (event: CallEvent) => CallEvent | undefined;

/** The limits and mappings that middlewares set for a call. The provider does not see them. */
export interface CallTerms {
  /**
   * The call is stopped with a `TimeoutError` when the provider takes longer, even if it does not heed its signal. Of several, the
   * smallest counts. Each round of a call that asks something has the whole time, and waiting for an answer to a question takes none of it.
   */
  readonly timeoutMs?: number | undefined;
  /**
   * Changes what the call emits on its way to the caller, or drops it. Of several, that of the innermost middleware comes first. One that
   * throws keeps the event from the caller.
   */
  readonly mapEvent?: MapEvent | undefined;
}

/** Timers take no more, about 25 days; with a greater number they would fire at once. */
const maxTimerMs = 2 ** 31 - 1;

/**
 * The time a call has, from when this is made. There is no timer and no listener before {@link watch} and after
 * {@link stop}: most tools answer at once, and for them both were a third of the call.
 */
export class TimeLimit {
  /** Aborted with a `TimeoutError`, or with the caller's reason when the caller gives up first. */
  readonly cancellation: LazyAbort = new LazyAbort();
  readonly #timeoutMs: number;
  readonly #caller: Cancellation;
  readonly #clock: Clock;
  #endsAt: number;
  /** How many reasons there are for the time to stand still. */
  #holds = 0;
  #heldSince = 0;
  #state: "new" | "watching" | "over" = "new";
  #stopTimer = (): void => {};

  constructor(timeoutMs: number, caller: Cancellation, clock: Clock) {
    this.#timeoutMs = timeoutMs;
    this.#caller = caller;
    this.#clock = clock;
    this.#endsAt = clock.now() + Math.min(timeoutMs, maxTimerMs);
    if (caller.isAborted) this.#end();
  }

  /** The call was not answered at once: from now on it can be aborted. */
  watch(): void {
    if (this.#caller.isAborted) return this.#end();
    this.#state = "watching";
    this.#caller.onAbort(this.#end);
    this.#arm();
  }

  /** Stops the time while the caller is being asked, until the returned function is called. */
  hold(): () => void {
    if (this.#holds++ === 0) this.#heldSince = this.#clock.now();
    this.#stopTimer();
    return () => {
      if (--this.#holds > 0) return;
      this.#endsAt += this.#clock.now() - this.#heldSince;
      this.#arm();
    };
  }

  /** The call ended. */
  stop(): void {
    if (this.#state === "watching") this.#caller.offAbort(this.#end);
    this.#state = "over";
    this.#stopTimer();
  }

  readonly #end = (): void => {
    this.stop();
    const { isAborted, reason } = this.#caller;
    this.cancellation.abort(isAborted ? reason : new TimeoutError("total", this.#timeoutMs));
  };

  #arm(): void {
    if (this.#state !== "watching" || this.#holds > 0) return;
    const leftMs = Math.max(0, this.#endsAt - this.#clock.now());
    this.#stopTimer = this.#clock.timer(leftMs, this.#end);
  }
}

/** The same context, whose events are changed on their way to the caller, or dropped. */
export function withMappedEvents(context: CallContext, mapEvent: MapEvent): CallContext {
  const tell: CallContext["emit"] = async (event) => {
    const mapped = mapEvent(event);
    if (mapped !== undefined) await context.emit(mapped);
  };
  return withContext(context, { emit: handled(tell) });
}

/** The same context, stopped by the limit: what a provider that does not heed its signal says later is dropped. */
export function withLimit(context: CallContext, limit: TimeLimit): CallContext {
  const { cancellation } = limit;
  return withContext(context, {
    cancellation,
    emit: handled(async (event) => (cancellation.isAborted ? undefined : context.emit(event))),
    ask: context.ask === undefined ? undefined : withoutTime(context.ask, limit),
  });
}

/** The time that people take to answer is not the tool's. */
function withoutTime(ask: AskCaller, limit: TimeLimit): AskCaller {
  return async (question, signal) => {
    const release = limit.hold();
    try {
      return await ask(question, signal);
    } finally {
      release();
    }
  };
}

/** A tool that does not wait for its `emit` must not end the process when that fails. A tool that waits gets the error. */
function handled(emit: CallContext["emit"]): CallContext["emit"] {
  return (event) => {
    const emitted = emit(event);
    emitted.catch(() => {});
    return emitted;
  };
}

/** Nothing was asked for. */
export const noTerms: CallTerms = {};

/** The terms of outer middlewares together with those of an inner one. */
export function addTerms(outer: CallTerms, { timeoutMs, mapEvent }: CallTerms): CallTerms {
  if (timeoutMs === undefined && mapEvent === undefined) return outer;
  if (timeoutMs !== undefined && !(timeoutMs >= 0))
    throw new RangeError(`timeoutMs must be a number of milliseconds, not ${timeoutMs}`);
  return {
    timeoutMs: Math.min(timeoutMs ?? Infinity, outer.timeoutMs ?? Infinity),
    mapEvent: inTurn(mapEvent, outer.mapEvent),
  };
}

/** An outcome whose words on the work were changed like any other progress. */
export function mapMessage(outcome: Outcome, mapEvent: MapEvent): Outcome {
  const { task } = outcome;
  if (task?.message === undefined) return outcome;
  const mapped = toMapped(mapEvent, task.message);
  return { ...outcome, task: { ...task, message: mapped } };
}

function toMapped(mapEvent: MapEvent, message: string): string | undefined {
  try {
    const event = mapEvent({ kind: "progress", message });
    return event?.kind === "progress" ? event.message : undefined;
  } catch {
    return undefined;
  }
}

function inTurn(inner: MapEvent | undefined, outer: MapEvent | undefined): MapEvent | undefined {
  if (inner === undefined || outer === undefined) return inner ?? outer;
  return (event) => {
    const mapped = inner(event);
    return mapped === undefined ? undefined : outer(mapped);
  };
}
