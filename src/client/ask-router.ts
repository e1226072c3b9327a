import type { Clock } from "../async/clock.ts";
import { RpcError } from "../errors/rpc-error.ts";
import type { RawJson } from "../json/raw.ts";
import type { Ask } from "../mcp/types.ts";
import type { AskCaller } from "../tools/context.ts";

export interface AskRouterOptions {
  readonly clock: Clock;
  /** How long a question waits for the other calls to end before it is refused. */
  readonly maxWaitMs: number;
  /** Told when the server first asks something in the middle of a call. */
  readonly onAsked: () => void;
}

/**
 * Finds the call a legacy server's question belongs to, where neither the question nor the stream it came on tells: it is
 * asked of a caller only while exactly one call can have asked it. With several underway it waits for the others to end.
 */
export class AskRouter {
  readonly #options: AskRouterOptions;
  readonly #callers = new Set<AskCaller>();
  /** Questions that wait until it is known whose they are, or clear that it never will be. */
  readonly #unplaced = new Set<(isKnown: boolean) => void>();
  /** A call was given up, and the server may not care: whatever it asks from now on may be for that one. */
  #hasStray = false;

  constructor(options: AskRouterOptions) {
    this.#options = options;
  }

  /** A call is underway whose caller can be asked, until the returned function is told whether the server ended it. */
  join(caller: AskCaller): (isAnswered: boolean) => void {
    this.#callers.add(caller);
    return (isAnswered) => {
      this.#callers.delete(caller);
      this.#hasStray ||= !isAnswered;
      // A call that was given up may be the one that asks: its question is nobody else's.
      const isKnown = isAnswered && this.#callers.size <= 1;
      if (isKnown || !isAnswered) for (const place of this.#unplaced) place(isKnown);
    };
  }

  /** Asks the one caller there is. Rejects with an `RpcError` when there is none, or no way to tell. */
  async ask(ask: Ask, signal: AbortSignal): Promise<RawJson> {
    this.#options.onAsked();
    const isKnown = this.#callers.size <= 1 || (await this.#untilPlaced(signal));
    const [caller, ...others] = this.#callers;
    if (caller === undefined) throw noCaller(`${ask.method} belongs to no call that is underway`);
    if (this.#hasStray) throw noCaller(`${ask.method} may belong to a call that was given up`);
    if (!isKnown || others.length > 0)
      throw noCaller(`Several calls are underway, and ${ask.method} does not say for which it is`);
    return caller(ask, signal);
  }

  #untilPlaced(signal: AbortSignal): Promise<boolean> {
    const { clock, maxWaitMs } = this.#options;
    return new Promise((resolve) => {
      const settle = (isKnown: boolean): void => {
        stop();
        signal.removeEventListener("abort", giveUp);
        this.#unplaced.delete(settle);
        resolve(isKnown);
      };
      const giveUp = (): void => settle(false);
      const stop = clock.timer(maxWaitMs, giveUp);
      signal.addEventListener("abort", giveUp, { once: true });
      this.#unplaced.add(settle);
    });
  }
}

function noCaller(text: string): RpcError {
  return new RpcError("rpc.invalid_params", text);
}
