import { ending } from "../async/awaitable.ts";
import { type Cancellation, fromSignal } from "../async/cancellation.ts";
import type { Clock } from "../async/clock.ts";
import { type Deadline, DeadlineTimer } from "../async/deadline.ts";

/** How long something may take, and who else may stop it. */
export interface Limits {
  readonly signal?: AbortSignal | undefined;
  /** Instead of `signal`. */
  readonly stop?: Cancellation | undefined;
  readonly timeoutMs?: number | undefined;
  readonly maxTotalMs?: number | undefined;
}

/** The deadlines of everything a client has underway. They stand still while it answers a question of the server. */
export class Deadlines {
  readonly #defaults: { readonly timeoutMs: number; readonly maxTotalMs: number };
  readonly #timer: DeadlineTimer;

  constructor(defaults: { readonly timeoutMs: number; readonly maxTotalMs: number }, clock: Clock) {
    this.#defaults = defaults;
    this.#timer = new DeadlineTimer(clock);
  }

  /** Runs work under a deadline of its own, which it has to obey. */
  run<T>(limits: Limits, work: (underway: Deadline) => Promise<T>): Promise<T> {
    const { timeoutMs: idleMs = this.#defaults.timeoutMs, signal } = limits;
    const { maxTotalMs: totalMs = this.#defaults.maxTotalMs } = limits;
    const caller = signal === undefined ? limits.stop : fromSignal(signal);
    const deadline = this.#timer.start({ idleMs, totalMs, caller });
    return ending(promised(deadline, work), () => deadline[Symbol.dispose]());
  }

  /** Stops the idle clocks of all that runs, because the wait is ours, until the returned function is called. */
  hold(): () => void {
    const releases = this.#timer.running.map((deadline) => deadline.hold());
    return () => releases.forEach((release) => release());
  }
}

/** What is thrown while work begins is a rejection too. */
function promised<T>(deadline: Deadline, work: (underway: Deadline) => Promise<T>): Promise<T> {
  try {
    return work(deadline);
  } catch (error) {
    return Promise.reject(error);
  }
}
