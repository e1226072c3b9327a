import type { Cancellation } from "./cancellation.ts";

/**
 * An abort controller that is made when its signal is first read. Making one for every call was 9 % of a small call, and
 * most work ends before it could be stopped.
 */
export class LazyAbort implements Cancellation {
  #controller: AbortController | undefined;
  /** The first to listen is the only one, nearly always; a set for it would be dearer than all the rest. */
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
