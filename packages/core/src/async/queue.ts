/**
 * A queue between one producer and one consumer. `push` resolves when there is room for more, so a producer that waits
 * for it never fills memory; one that does not is refused at twice the limit.
 */
export class BoundedQueue<T> implements AsyncIterable<T> {
  readonly #limit: number;
  readonly #items: T[] = [];
  #room: Deferred<void> | undefined;
  #arrival: Deferred<void> | undefined;
  #isClosed = false;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Whether a producer has to wait. */
  get isFull(): boolean {
    return this.#items.length >= this.#limit;
  }

  /** Adds an item. Throws a `RangeError` when the producer ignored that the queue is full. */
  push(item: T): Promise<void> {
    if (this.#isClosed) return Promise.resolve();
    if (this.#items.length >= 2 * this.#limit)
      throw new RangeError(`More than ${2 * this.#limit} items wait`);
    this.#items.push(item);
    this.#arrival?.resolve();
    this.#arrival = undefined;
    if (!this.isFull) return Promise.resolve();
    this.#room ??= createDeferred();
    return this.#room.promise;
  }

  /** Ends the iteration after the items in the queue. Items that are pushed later are dropped. */
  close(): void {
    this.#isClosed = true;
    this.#arrival?.resolve();
    this.#room?.resolve();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T> {
    for (;;) {
      while (this.#items.length > 0) {
        const item = this.#items.shift() as T;
        if (this.#items.length < this.#limit) {
          this.#room?.resolve();
          this.#room = undefined;
        }
        yield item;
      }
      if (this.#isClosed) return;
      this.#arrival = createDeferred();
      await this.#arrival.promise;
    }
  }
}

/** A promise together with the functions that settle it. */
export interface Deferred<T> {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
  readonly reject: (reason: unknown) => void;
}

/** `Promise.withResolvers`, which Node 20 lacks. */
export function createDeferred<T>(): Deferred<T> {
  let resolve!: (value: T) => void;
  let reject!: (reason: unknown) => void;
  const promise = new Promise<T>((onResolve, onReject) => {
    resolve = onResolve;
    reject = onReject;
  });
  return { promise, resolve, reject };
}
