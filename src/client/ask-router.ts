import { RpcError } from "../errors/rpc-error.ts";
import type { RawJson } from "../json/raw.ts";
import type { Ask } from "../mcp/types.ts";
import type { AskCaller } from "../tools/context.ts";

/**
 * Finds the call a legacy server's question belongs to, where neither the question nor the stream it came on tells: it is
 * asked of a caller only while there is exactly one call that can have asked it. What cannot be told is refused: a question
 * must never reach somebody else, and must not be shown as another call's either.
 */
export class AskRouter {
  readonly #onAsked: () => void;
  readonly #callers = new Set<AskCaller>();
  /** Everybody who ever called: a server may ask for a call that is long over. */
  readonly #owners = new Set<unknown>();
  /** A call was given up, and the server may not care: whatever it asks from now on may be for that one. */
  #hasStray = false;

  /** `onAsked` is told whenever the server asks something without saying for which call. */
  constructor(onAsked: () => void) {
    this.#onAsked = onAsked;
  }

  /** A call of somebody is underway who can be asked, until the returned function is told whether the server ended it. */
  join(caller: AskCaller, owner: unknown): (isAnswered: boolean) => void {
    this.#callers.add(caller);
    // Two are as many as a thousand.
    if (this.#owners.size < 2) this.#owners.add(owner);
    return (isAnswered) => {
      this.#callers.delete(caller);
      this.#hasStray ||= !isAnswered;
    };
  }

  /** Asks the one caller there is. Rejects with an `RpcError` when there is none, or no way to tell. */
  async ask(ask: Ask, signal: AbortSignal): Promise<RawJson> {
    this.#onAsked();
    const [caller, ...others] = this.#callers;
    if (caller === undefined) throw noCaller(`${ask.method} belongs to no call that is underway`);
    if (this.#hasStray) throw noCaller(`${ask.method} may belong to a call that was given up`);
    if (others.length > 0 || this.#owners.size > 1)
      throw noCaller(`There are several calls it can be for, and ${ask.method} does not say which`);
    return caller(ask, signal);
  }
}

function noCaller(text: string): RpcError {
  return new RpcError("rpc.invalid_params", text);
}
