import { AbortedError, type Delivery, TimeoutError } from "../errors/index.ts";
import { ending } from "./awaitable.ts";
import type { Clock } from "./clock.ts";
import { Numbered } from "./collections.ts";

/** How long something may take, and what else may stop it. */
export interface TimeLimits {
  /** The caller's own signal to stop. */
  readonly signal?: AbortSignal | undefined;
  /** Instead of `signal`. */
  readonly stop?: Cancellation | undefined;
  /** How long nothing may happen; {@link Deadline.touch} restarts it. */
  readonly timeoutMs?: number | undefined;
  /** How long the whole may take, whatever happens meanwhile. */
  readonly maxTotalMs?: number | undefined;
}

/**
 * The deadlines of all that is underway, with one timer: it waits for the first of them, then
 * checks which others are due.
 */
export class Deadlines {
  readonly clock: Clock;
  readonly #defaults: () => Pick<TimeLimits, "timeoutMs" | "maxTotalMs">;
  readonly #running = new Numbered<Deadline>();
  #wakesAt = Number.POSITIVE_INFINITY;
  #stopTimer: (() => void) | undefined;

  /** The defaults are read when work begins. */
  constructor(clock: Clock, defaults: () => Pick<TimeLimits, "timeoutMs" | "maxTotalMs">) {
    this.clock = clock;
    this.#defaults = defaults;
  }

  /**
   * Runs work under a deadline of its own, which it has to obey. An error that it throws at
   * once becomes a rejection too.
   */
  run<T>(limits: TimeLimits, work: (underway: Deadline) => Promise<T>): Promise<T> {
    const deadline = this.start(limits);
    let result: Promise<T>;
    try {
      result = work(deadline);
    } catch (error) {
      result = Promise.reject(error);
    }
    return ending(result, () => deadline[Symbol.dispose]());
  }

  start({ signal, stop, timeoutMs, maxTotalMs }: TimeLimits): Deadline {
    const defaults = this.#defaults();
    const deadline = new Deadline({
      deadlines: this,
      caller: signal === undefined ? stop : fromSignal(signal),
      idleMs: timeoutMs ?? defaults.timeoutMs ?? Number.POSITIVE_INFINITY,
      totalMs: maxTotalMs ?? defaults.maxTotalMs ?? Number.POSITIVE_INFINITY,
    });
    deadline.number = this.#running.add(deadline);
    this.wakeAt(deadline.dueAt);
    return deadline;
  }

  /** Stops the idle clocks of all that runs, because the wait is ours, until the returned function is called. */
  hold(): () => void {
    const releases = this.#running.values().map((deadline) => deadline.hold());
    return () => releases.forEach((release) => release());
  }

  /** Has the deadlines checked no later than this. */
  wakeAt(at: number): void {
    // Deadlines that are made later are due later, as a rule, so this is seldom more than a comparison.
    if (at >= this.#wakesAt || this.#running.size === 0) return;
    this.#stopTimer?.();
    this.#wakesAt = at;
    this.#stopTimer = this.clock.timer(Math.max(0, at - this.clock.now()), () => this.#checkAll());
  }

  end(deadline: Deadline): void {
    this.#running.delete(deadline.number);
    if (this.#running.size > 0) return;
    this.#stopTimer?.();
    this.#stopTimer = undefined;
    this.#wakesAt = Number.POSITIVE_INFINITY;
  }

  #checkAll(): void {
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

interface DeadlineOptions {
  readonly deadlines: Deadlines;
  readonly caller: Cancellation | undefined;
  readonly idleMs: number;
  readonly totalMs: number;
}

/**
 * The one clock of a call: whichever of its three reasons comes first aborts it.
 * Dispose it when the call ends.
 */
export class Deadline implements Disposable {
  /** Aborted with a `TimeoutError` or an `AbortedError`. */
  readonly stop: LazyAbort = new LazyAbort();
  /** Whether anything was sent; the error tells. */
  isSent = false;
  /** Called on disposal, with whether a sent request was given up: cheaper than one more promise. */
  onEnd: ((isGivenUp: boolean) => void) | undefined;
  /** Its number among the running deadlines. */
  number = 0;
  readonly #options: DeadlineOptions;
  readonly #startedAt: number;
  #touchedAt: number;
  #holds = 0;

  constructor(options: DeadlineOptions) {
    const { deadlines, caller } = options;
    this.#options = options;
    this.#startedAt = deadlines.clock.now();
    this.#touchedAt = this.#startedAt;
    if (caller?.isAborted === true) this.#giveUp();
    else caller?.onAbort(this.#giveUp);
  }

  /** When the first of its limits is reached, as far as is known now. */
  get dueAt(): number {
    if (this.stop.isAborted) return Number.POSITIVE_INFINITY;
    const totalAt = this.#startedAt + this.#options.totalMs;
    return this.#holds > 0 ? totalAt : Math.min(this.#touchedAt + this.#options.idleMs, totalAt);
  }

  /** Aborts it if it is due. */
  check(now: number): void {
    if (now < this.dueAt) return;
    const isTotal = now >= this.#startedAt + this.#options.totalMs;
    const { idleMs, totalMs } = this.#options;
    const delivery = toDelivery(this.isSent);
    this.stop.abort(new TimeoutError(isTotal ? "total" : "idle", isTotal ? totalMs : idleMs, delivery));
  }

  /** Something happened, so it is not idle. Only the time is noted: progress may come by the thousand. */
  touch(): void {
    this.#touchedAt = this.#options.deadlines.clock.now();
  }

  /** Stops the idle clock, because the wait is ours, until the returned function is called. */
  hold(): () => void {
    this.#holds++;
    let isHeld = true;
    return () => {
      if (isHeld) this.#holds--;
      isHeld = false;
      this.touch();
      this.#options.deadlines.wakeAt(this.dueAt);
    };
  }

  [Symbol.dispose](): void {
    this.#options.caller?.offAbort(this.#giveUp);
    this.#options.deadlines.end(this);
    this.onEnd?.(this.isSent && this.stop.isAborted);
  }

  readonly #giveUp = (): void => {
    this.stop.abort(new AbortedError(toDelivery(this.isSent), this.#options.caller?.reason));
  };
}

function toDelivery(isSent: boolean): Delivery {
  return isSent ? "outcome_unknown" : "not_sent";
}

/**
 * An abort controller that is made when its signal is first read. Making one for every call was 9 % of a small call, and
 * most work ends before it could be stopped.
 */
export class LazyAbort implements Cancellation {
  #controller: AbortController | undefined;
  /** Nearly always the only listener; a set would cost more than all the rest. */
  #callback: (() => void) | undefined;
  #others: Set<() => void> | undefined;
  #reason: unknown;
  #isAborted = false;

  get isAborted(): boolean {
    return this.#isAborted;
  }

  get reason(): unknown {
    return this.#reason;
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#isAborted) this.#controller.abort(this.#reason);
    }
    return this.#controller.signal;
  }

  onAbort(callback: () => void): void {
    if (this.#callback === undefined) this.#callback = callback;
    else (this.#others ??= new Set()).add(callback);
  }

  offAbort(callback: () => void): void {
    if (this.#callback === callback) this.#callback = undefined;
    else this.#others?.delete(callback);
  }

  abort(reason: unknown): void {
    if (this.#isAborted) return;
    this.#isAborted = true;
    this.#reason = reason;
    this.#controller?.abort(reason);
    const callback = this.#callback;
    const others = this.#others;
    this.#callback = undefined;
    this.#others = undefined;
    callback?.();
    if (others !== undefined) for (const other of others) other();
  }
}

/** A request to stop something: an `AbortSignal` that costs nothing until one is needed. */
export interface Cancellation {
  readonly isAborted: boolean;
  /** Why it was aborted; undefined before that. */
  readonly reason: unknown;
  /** The same as a signal, for code that needs one. Made when it is first read. */
  readonly signal: AbortSignal;
  /** Calls back once when it is aborted, unless {@link Cancellation.offAbort} comes first. */
  onAbort(callback: () => void): void;
  offAbort(callback: () => void): void;
}

/** A signal as a cancellation. */
export function fromSignal(signal: AbortSignal): Cancellation {
  return {
    signal,
    get isAborted() {
      return signal.aborted;
    },
    get reason(): unknown {
      return signal.reason as unknown;
    },
    onAbort: (callback) => signal.addEventListener("abort", callback, { once: true }),
    offAbort: (callback) => signal.removeEventListener("abort", callback),
  };
}
