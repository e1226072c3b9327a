import type { Cancellation } from "../async/cancellation.ts";
import type { Clock } from "../async/clock.ts";
import { LazyAbort } from "../async/lazy-abort.ts";
import { TimeoutError } from "../errors/timeout-error.ts";

/** Timers take no more, about 25 days; with a greater number they would fire at once. */
const maxTimerMs = 2 ** 31 - 1;

/**
 * The time a call has, from when this is made. There is no timer and no listener before {@link watch} and after
 * {@link stop}: most tools answer at once, and for them both were a third of the call.
 */
export class TimeLimit {
  /** Aborted with a `TimeoutError`, or with the caller's reason when the caller gives up first. */
  readonly cancellation: Cancellation;
  readonly #abort = new LazyAbort();
  readonly #timeoutMs: number;
  readonly #caller: Cancellation;
  readonly #clock: Clock;
  #leftMs: number;
  #runningSince: number;
  /** How many reasons there are for the time to stand still. */
  #holds = 0;
  #state: "new" | "watching" | "over" = "new";
  #stopTimer = (): void => {};

  constructor(timeoutMs: number, caller: Cancellation, clock: Clock) {
    this.cancellation = this.#abort;
    this.#timeoutMs = timeoutMs;
    this.#caller = caller;
    this.#clock = clock;
    this.#leftMs = Math.min(timeoutMs, maxTimerMs);
    this.#runningSince = clock.now();
    if (caller.isAborted) this.#follow();
  }

  /** The call was not answered at once: from now on it can be aborted. */
  watch(): void {
    if (this.#caller.isAborted) return this.#follow();
    this.#state = "watching";
    this.#caller.onAbort(this.#follow);
    if (this.#holds === 0) this.#pass();
    this.#arm();
  }

  /** Stops the time while the caller is being asked, until the returned function is called. */
  hold(): () => void {
    if (this.#holds++ === 0) this.#pass();
    this.#stopTimer();
    return () => {
      if (--this.#holds > 0) return;
      this.#runningSince = this.#clock.now();
      this.#arm();
    };
  }

  /** The call ended. */
  stop(): void {
    if (this.#state === "watching") this.#caller.offAbort(this.#follow);
    this.#state = "over";
    this.#stopTimer();
  }

  readonly #follow = (): void => this.#end(this.#caller.reason);

  #end(reason: unknown): void {
    this.stop();
    this.#abort.abort(reason);
  }

  /** Takes off the time that went by. */
  #pass(): void {
    const now = this.#clock.now();
    this.#leftMs = Math.max(0, this.#leftMs - (now - this.#runningSince));
    this.#runningSince = now;
  }

  #arm(): void {
    if (this.#state !== "watching" || this.#holds > 0) return;
    const end = (): void => this.#end(new TimeoutError("total", this.#timeoutMs));
    this.#stopTimer = this.#clock.timer(this.#leftMs, end);
  }
}
