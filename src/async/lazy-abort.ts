/**
 * An abort controller that is made when somebody looks at its signal. Making one for every call was 9 % of a small call, and
 * most work ends before anybody could want to stop it.
 */
export class LazyAbort {
  #controller: AbortController | undefined;
  #reason: unknown;
  #isAborted = false;

  get isAborted(): boolean {
    return this.#isAborted;
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#isAborted) this.#controller.abort(this.#reason);
    }
    return this.#controller.signal;
  }

  abort(reason: unknown): void {
    if (this.#isAborted) return;
    this.#isAborted = true;
    this.#reason = reason;
    this.#controller?.abort(reason);
  }
}
