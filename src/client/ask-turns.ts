import type { Cancellation } from "../async/cancellation.ts";
import { awakeTimer, type Clock } from "../async/clock.ts";
import { UpstreamError } from "../errors/upstream-error.ts";
import type { AskHabits } from "./ask-habits.ts";
import type { OpenCall } from "./open-calls.ts";

interface AskTurnsOptions {
  /** The name of the server, for messages to callers. */
  readonly server: string;
  readonly clock: Clock;
  readonly habits: AskHabits;
  /** Called when a call begins to wait for its turn; the returned function is called when it waits no longer. */
  readonly onWaiting?: (() => () => void) | undefined;
}

/** A call that waits for its turn. */
interface WaitingTurn {
  readonly call: OpenCall;
  readonly begin: () => void;
}

/** How long a call of an unknown kind waits for others of an unknown kind, at a server that never asked anything. */
const trialMs = 2000;
/** How long a call waits for its turn. */
const maxWaitMs = 60_000;
const maxWaiting = 1000;

/** Lets one call that may ask run at a time, and none while a question is held. Calls that do not ask need no turn. */
export class AskTurns {
  readonly #options: AskTurnsOptions;
  /** The calls underway that may ask. After a trial there are several. */
  readonly #loud = new Set<OpenCall>();
  readonly #queue = new Set<WaitingTurn>();
  #holds = 0;

  constructor(options: AskTurnsOptions) {
    this.#options = options;
  }

  /** Begins a call's turn. A promise means that the call waits for it; it rejects when the turn does not come. */
  take(call: OpenCall, stop: Cancellation): Promise<void> | undefined {
    const isLoud = this.#options.habits.mayAsk(call.about);
    if (isLoud && (this.#queue.size > 0 || !this.#isFree)) return this.#wait(call, stop);
    if (isLoud) this.#loud.add(call);
    return undefined;
  }

  /** A call is known not to need a turn: it asks on a stream of its own. */
  release(call: OpenCall): void {
    if (!this.#loud.has(call)) return;
    this.#options.habits.noteQuiet(call.about);
    if (!this.#options.habits.mayAsk(call.about)) this.#loud.delete(call);
    this.#serve();
  }

  end(call: OpenCall): void {
    this.#loud.delete(call);
    this.#serve();
  }

  /** Begins no turn until the returned function is called. */
  hold(): () => void {
    this.#holds++;
    return () => {
      this.#holds--;
      this.#serve();
    };
  }

  get #isFree(): boolean {
    return this.#loud.size === 0 && this.#holds === 0;
  }

  #serve(): void {
    for (const { call, begin } of this.#queue)
      if (this.#isFree || !this.#options.habits.mayAsk(call.about)) begin();
  }

  #wait(call: OpenCall, stop: Cancellation): Promise<void> {
    const { server, clock, habits, onWaiting } = this.#options;
    if (this.#queue.size >= maxWaiting)
      return Promise.reject(busy(server, `has more calls waiting than it may (${maxWaiting})`));
    return new Promise((resolve, reject) => {
      const doneWaiting = onWaiting?.();
      const end = (settle: () => void): void => {
        stopTimer();
        stopTrial();
        stop.offAbort(giveUp);
        this.#queue.delete(waiting);
        doneWaiting?.();
        settle();
      };
      const begin = (): void => {
        if (habits.mayAsk(call.about)) this.#loud.add(call);
        end(resolve);
      };
      const waiting: WaitingTurn = { call, begin };
      const giveUp = (): void => end(() => reject(stop.reason));
      const stopTimer = clock.timer(maxWaitMs, () => {
        const text = `is busy with a call that may ask its caller something, and it did not end within ${maxWaitMs} ms`;
        end(() => reject(busy(server, text)));
      });
      // Most servers never ask; callers of one of those must not wait for each other for long. The first question of a
      // server may have come while this process was stopped, so only time counts in which it was awake to read it.
      const stopTrial = awakeTimer(clock, trialMs, () => {
        if (!habits.hasAsked && this.#holds === 0) begin();
      });
      this.#queue.add(waiting);
      if (stop.isAborted) giveUp();
      else stop.onAbort(giveUp);
    });
  }
}

function busy(server: string, why: string): UpstreamError {
  return new UpstreamError("busy", `${server} ${why}; this one was not sent.`, {
    server,
    delivery: "not_sent",
  });
}
