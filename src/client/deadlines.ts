import type { Clock } from "../async/clock.ts";
import { createDeadline, type Deadline } from "../async/deadline.ts";

/** How long something may take, and who else may stop it. */
export interface Limits {
  readonly signal?: AbortSignal | undefined;
  readonly timeoutMs?: number | undefined;
  readonly maxTotalMs?: number | undefined;
}

/** Something that runs against the clock. */
export interface Underway extends Pick<Deadline, "signal" | "touch" | "hold"> {
  /** Something has left; what fails from now on has an unknown outcome. */
  readonly sent: () => void;
}

/** The deadlines of everything a client has underway. They stand still while it answers a question of the server. */
export class Deadlines {
  readonly #defaults: { readonly timeoutMs: number; readonly maxTotalMs: number };
  readonly #clock: Clock;
  readonly #running = new Set<Deadline>();

  constructor(defaults: { readonly timeoutMs: number; readonly maxTotalMs: number }, clock: Clock) {
    this.#defaults = defaults;
    this.#clock = clock;
  }

  /** Runs work under a deadline of its own, whose signal it has to obey. */
  async run<T>(limits: Limits, work: (underway: Underway) => Promise<T>): Promise<T> {
    const { timeoutMs: idleMs = this.#defaults.timeoutMs, signal } = limits;
    const { maxTotalMs: totalMs = this.#defaults.maxTotalMs } = limits;
    let isSent = false;
    using deadline = createDeadline({ idleMs, totalMs, signal, clock: this.#clock, isSent: () => isSent });
    this.#running.add(deadline);
    try {
      return await work({
        signal: deadline.signal,
        touch: deadline.touch,
        hold: deadline.hold,
        sent: () => {
          isSent = true;
        },
      });
    } finally {
      this.#running.delete(deadline);
    }
  }

  /** Stops the idle clocks of all that runs, because the wait is ours, until the returned function is called. */
  hold(): () => void {
    const releases = Array.from(this.#running, (deadline) => deadline.hold());
    return () => releases.forEach((release) => release());
  }
}
