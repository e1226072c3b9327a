import type { Cancellation } from "./cancellation.ts";

/**
 * An abort controller that is made when somebody looks at its signal. Making one for every call was 9 % of a small call, and
 * most work ends before anybody could want to stop it.
 */
export class LazyAbort implements Cancellation {
  #controller: AbortController | undefined;
  #callbacks: Set<() => void> | undefined;
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
    this.#callbacks ??= new Set();
    this.#callbacks.add(callback);
  }

  offAbort(callback: () => void): void {
    this.#callbacks?.delete(callback);
  }

  abort(reason: unknown): void {
    if (this.#isAborted) return;
    this.#isAborted = true;
    this.#reason = reason;
    this.#controller?.abort(reason);
    const callbacks = this.#callbacks;
    this.#callbacks = undefined;
    if (callbacks !== undefined) for (const callback of callbacks) callback();
  }
}
