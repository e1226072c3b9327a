import { AbortedError } from "../errors/aborted-error.ts";
import type { Delivery } from "../errors/delivery.ts";
import { TimeoutError } from "../errors/timeout-error.ts";
import type { Clock } from "./clock.ts";

export interface DeadlineOptions {
  /** How long nothing may happen; {@link Deadline.touch} starts it anew. */
  readonly idleMs?: number | undefined;
  /** How long the whole may take, whatever happens meanwhile. */
  readonly totalMs?: number | undefined;
  /** The caller's own wish to stop. */
  readonly signal?: AbortSignal | undefined;
  /** Whether anything has left when it fires; the error says so. */
  readonly isSent?: () => boolean;
  readonly clock: Clock;
}

/** The one clock of a call: whichever of its three reasons comes first aborts its signal. Dispose it when the call ended. */
export interface Deadline extends Disposable {
  /** Aborted with a `TimeoutError` or an `AbortedError`. */
  readonly signal: AbortSignal;
  /** Something happened, so it is not idle. */
  touch(): void;
  /** Stops the idle clock, because the wait is ours, until the returned function is called. */
  hold(): () => void;
}

/** Starts the clock. */
export function createDeadline(options: DeadlineOptions): Deadline {
  const { idleMs, totalMs, signal, clock, isSent = () => true } = options;
  const controller = new AbortController();
  const delivery = (): Delivery => (isSent() ? "outcome_unknown" : "not_sent");
  let touchedAt = clock.now();
  let holds = 0;
  let stopIdle: (() => void) | undefined;
  // Touching only notes the time; the timer looks at it when it fires. Progress may come by the thousand.
  const watchIdle = (ms: number, limit: number): void => {
    stopIdle = clock.timer(ms, () => {
      const left = holds > 0 ? limit : touchedAt + limit - clock.now();
      if (left > 0) watchIdle(left, limit);
      else controller.abort(new TimeoutError("idle", limit, delivery()));
    });
  };
  if (idleMs !== undefined) watchIdle(idleMs, idleMs);
  const stopTotal =
    totalMs === undefined
      ? undefined
      : clock.timer(totalMs, () => controller.abort(new TimeoutError("total", totalMs, delivery())));
  const onAbort = (): void => controller.abort(new AbortedError(delivery(), signal?.reason));
  if (signal?.aborted === true) onAbort();
  else signal?.addEventListener("abort", onAbort, { once: true });
  return {
    signal: controller.signal,
    touch: () => {
      touchedAt = clock.now();
    },
    hold: () => {
      holds++;
      let isHeld = true;
      return () => {
        if (isHeld) holds--;
        isHeld = false;
        touchedAt = clock.now();
      };
    },
    [Symbol.dispose]: () => {
      stopIdle?.();
      stopTotal?.();
      signal?.removeEventListener("abort", onAbort);
    },
  };
}
