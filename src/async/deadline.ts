import { AbortedError } from "../errors/aborted-error.ts";
import type { Delivery } from "../errors/delivery.ts";
import { TimeoutError } from "../errors/timeout-error.ts";
import { type Cancellation, fromSignal } from "./cancellation.ts";
import type { Clock } from "./clock.ts";
import { LazyAbort } from "./lazy-abort.ts";
import { Numbered } from "./numbered.ts";

export interface DeadlineLimits {
  /** How long nothing may happen; {@link Deadline.touch} starts it anew. */
  readonly idleMs?: number | undefined;
  /** How long the whole may take, whatever happens meanwhile. */
  readonly totalMs?: number | undefined;
  /** The caller's own wish to stop. */
  readonly caller?: Cancellation | undefined;
}

export interface DeadlineOptions extends Omit<DeadlineLimits, "caller"> {
  readonly signal?: AbortSignal | undefined;
  readonly clock: Clock;
}

/** A deadline with a timer of its own. */
export function createDeadline({ signal, clock, ...limits }: DeadlineOptions): Deadline {
  return new DeadlineTimer(clock).start({ ...limits, caller: signal && fromSignal(signal) });
}

/** One timer for any number of deadlines: it waits for the first of them, and then looks who else is due. */
export class DeadlineTimer {
  readonly clock: Clock;
  readonly #running = new Numbered<Deadline>();
  #wakesAt = Number.POSITIVE_INFINITY;
  #stopTimer: (() => void) | undefined;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  get running(): readonly Deadline[] {
    return this.#running.values();
  }

  start(limits: DeadlineLimits): Deadline {
    const deadline = new Deadline(this, limits);
    deadline.number = this.#running.add(deadline);
    this.wakeAt(deadline.dueAt);
    return deadline;
  }

  /** Looks at the deadlines no later than this. */
  wakeAt(at: number): void {
    // Those who come later are due later, as a rule, so this is seldom more than a comparison.
    if (at >= this.#wakesAt) return;
    this.#stopTimer?.();
    this.#wakesAt = at;
    this.#stopTimer = this.clock.timer(Math.max(0, at - this.clock.now()), () => this.#look());
  }

  end(deadline: Deadline): void {
    this.#running.delete(deadline.number);
    if (this.#running.size > 0) return;
    this.#stopTimer?.();
    this.#stopTimer = undefined;
    this.#wakesAt = Number.POSITIVE_INFINITY;
  }

  #look(): void {
    const now = this.clock.now();
    this.#wakesAt = Number.POSITIVE_INFINITY;
    let next = Number.POSITIVE_INFINITY;
    for (const deadline of this.#running.values()) {
      deadline.check(now);
      next = Math.min(next, deadline.dueAt);
    }
    this.wakeAt(next);
  }
}

/** The one clock of a call: whichever of its three reasons comes first aborts it. Dispose it when the call ended. */
export class Deadline implements Disposable {
  /** Aborted with a `TimeoutError` or an `AbortedError`. */
  readonly stop: LazyAbort = new LazyAbort();
  /** Whether anything has left; the error says so. */
  isSent = false;
  /** Its number among those that run, for whoever started it. */
  number = 0;
  readonly #timer: DeadlineTimer;
  readonly #limits: DeadlineLimits;
  readonly #startedAt: number;
  #touchedAt: number;
  #holds = 0;

  constructor(timer: DeadlineTimer, limits: DeadlineLimits) {
    this.#timer = timer;
    this.#limits = limits;
    this.#startedAt = timer.clock.now();
    this.#touchedAt = this.#startedAt;
    const { caller } = limits;
    if (caller?.isAborted === true) this.#giveUp();
    else caller?.onAbort(this.#giveUp);
  }

  get signal(): AbortSignal {
    return this.stop.signal;
  }

  /** When the first of its limits is reached, as far as is known now. */
  get dueAt(): number {
    if (this.stop.isAborted) return Number.POSITIVE_INFINITY;
    const { idleMs = Number.POSITIVE_INFINITY, totalMs = Number.POSITIVE_INFINITY } = this.#limits;
    const idleAt = this.#holds > 0 ? Number.POSITIVE_INFINITY : this.#touchedAt + idleMs;
    return Math.min(idleAt, this.#startedAt + totalMs);
  }

  /** Aborts it if it is due. */
  check(now: number): void {
    if (now < this.dueAt) return;
    const { idleMs = 0, totalMs } = this.#limits;
    const isTotal = totalMs !== undefined && now >= this.#startedAt + totalMs;
    this.stop.abort(new TimeoutError(isTotal ? "total" : "idle", isTotal ? totalMs : idleMs, this.#delivery));
  }

  /** Something happened, so it is not idle. Only the time is noted: progress may come by the thousand. */
  touch(): void {
    this.#touchedAt = this.#timer.clock.now();
  }

  /** Stops the idle clock, because the wait is ours, until the returned function is called. */
  hold(): () => void {
    this.#holds++;
    let isHeld = true;
    return () => {
      if (isHeld) this.#holds--;
      isHeld = false;
      this.touch();
      this.#timer.wakeAt(this.dueAt);
    };
  }

  [Symbol.dispose](): void {
    this.#limits.caller?.offAbort(this.#giveUp);
    this.#timer.end(this);
  }

  get #delivery(): Delivery {
    return this.isSent ? "outcome_unknown" : "not_sent";
  }

  readonly #giveUp = (): void => {
    this.stop.abort(new AbortedError(this.#delivery, this.#limits.caller?.reason));
  };
}
