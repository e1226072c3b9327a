/** Things that are over and not closed yet. Dispose it to close all of them and wait until they are closed. */
export class ClosingSet implements AsyncDisposable {
  /** Those that are still in use. */
  readonly #retired = new Set<AsyncDisposable>();
  readonly #closing = new Set<Promise<void>>();

  /** Closes a thing. Resolves when it is closed; a thing that cannot be closed properly is over all the same. */
  close(thing: AsyncDisposable): Promise<void> {
    this.#retired.delete(thing);
    const closed: Promise<void> = Promise.resolve(thing[Symbol.asyncDispose]())
      .catch(() => {})
      .then(() => void this.#closing.delete(closed));
    this.#closing.add(closed);
    return closed;
  }

  /** Closes a thing when `idle` resolves, or when the set is disposed. */
  closeWhenIdle(thing: AsyncDisposable, idle: Promise<unknown>): void {
    this.#retired.add(thing);
    void idle.then(() => (this.#retired.has(thing) ? this.close(thing) : undefined));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const thing of this.#retired) void this.close(thing);
    await Promise.all(this.#closing);
  }
}
