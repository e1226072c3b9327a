import { type Clock, Quota } from "@junctor/core/async";
import { UpstreamError } from "@junctor/core/errors";

/** A call that waits for a connection. */
interface WaitingCall<Need, Connection> {
  readonly need: Need;
  readonly take: (connection: Connection) => void;
  readonly refuse: (error: Error) => void;
}

const maxWaiting = 1000;
/** How long a call waits for a connection. */
const maxWaitMs = 60_000;

/** Calls that wait because every connection of a server that they could use is busy, in the order they came. */
export class ConnectionQueue<Need, Connection> {
  readonly #server: string;
  readonly #clock: Clock;
  readonly #waiting = new Set<WaitingCall<Need, Connection>>();
  readonly #quota = new Quota({ what: "calls waiting", total: maxWaiting });

  readonly #onWaiting: () => () => void;

  /** `onWaiting` is called when a call begins to wait; the returned function is called when the call waits no longer. */
  constructor(server: string, clock: Clock, onWaiting: () => () => void) {
    this.#server = server;
    this.#clock = clock;
    this.#onWaiting = onWaiting;
  }

  /**
   * Resolves with a connection when it is this call's turn. Rejects with an `UpstreamError` when there is none in time, or when its
   * holder has its share of the waiting calls.
   */
  wait(need: Need, signal: AbortSignal, holder: unknown): Promise<Connection> {
    if (this.#quota.refusal(holder) !== undefined)
      return Promise.reject(this.#busy(`has more calls waiting than it may (${maxWaiting} for all callers)`));
    this.#quota.add(holder);
    return new Promise((resolve, reject) => {
      const doneWaiting = this.#onWaiting();
      const end = (): void => {
        doneWaiting();
        this.#quota.give(holder);
        stopTimer();
        signal.removeEventListener("abort", giveUp);
        this.#waiting.delete(waiting);
      };
      const waiting: WaitingCall<Need, Connection> = {
        need,
        take: (connection) => {
          end();
          resolve(connection);
        },
        refuse: (error) => {
          end();
          reject(error);
        },
      };
      const giveUp = (): void => waiting.refuse(signal.reason as Error);
      const late = `is busy with other calls, and none ended within ${maxWaitMs} ms`;
      const stopTimer = this.#clock.timer(maxWaitMs, () => waiting.refuse(this.#busy(late)));
      this.#waiting.add(waiting);
      signal.addEventListener("abort", giveUp, { once: true });
      if (signal.aborted) giveUp();
    });
  }

  /** Gives a connection that became free to the first call that can use it, in the same moment: no later call comes before it. */
  serve(connectionFor: (need: Need) => Connection | undefined): void {
    for (const waiting of this.#waiting) {
      const connection = connectionFor(waiting.need);
      if (connection !== undefined) waiting.take(connection);
    }
  }

  refuseAll(error: Error): void {
    for (const { refuse } of this.#waiting) refuse(error);
  }

  #busy(why: string): UpstreamError {
    const text = `${this.#server} ${why}; this one was not sent.`;
    return new UpstreamError("busy", text, { server: this.#server, delivery: "not_sent" });
  }
}
