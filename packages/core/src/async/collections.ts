/**
 * Things that come and go in great number, each under a number of its own that is never used again.
 *
 * Not a `Map` or a `Set`: V8 replaces their tables every few dozen deletions, and a table that was replaced keeps what it
 * held, and its successor, until old memory is collected. With one entry for every call, that was half of all garbage, and
 * ten times the work of collecting it.
 */
export class Numbered<T extends object> {
  #items: (T | undefined)[] = emptied(16);
  /** The number of the item at each place, or of the last item there. */
  #numberAt: number[] = Array.from({ length: 16 }, () => 0);
  #size = 0;
  #last = 0;

  get size(): number {
    return this.#size;
  }

  /** Adds an item and returns its number. */
  add(item: T): number {
    if (2 * this.#size >= this.#items.length) this.#grow();
    const mask = this.#items.length - 1;
    let number = this.#last + 1;
    // A number whose place is taken by an older item is skipped.
    while (this.#items[number & mask] !== undefined) number++;
    this.#items[number & mask] = item;
    this.#numberAt[number & mask] = number;
    this.#last = number;
    this.#size++;
    return number;
  }

  get(number: number): T | undefined {
    const place = number & (this.#items.length - 1);
    return this.#numberAt[place] === number ? this.#items[place] : undefined;
  }

  /** Removes an item; false when it was not there. */
  delete(number: number): boolean {
    if (this.get(number) === undefined) return false;
    this.#items[number & (this.#items.length - 1)] = undefined;
    this.#size--;
    return true;
  }

  /** All items at this moment, in no particular order. */
  values(): readonly T[] {
    return this.#items.filter((item) => item !== undefined);
  }

  /** Numbers that differ in their lower bits differ in one more, too: no two items want the same place. */
  #grow(): void {
    const items = this.#items;
    const numberAt = this.#numberAt;
    const mask = 2 * items.length - 1;
    this.#items = emptied(2 * items.length);
    this.#numberAt = Array.from({ length: 2 * items.length }, () => 0);
    for (const [place, item] of items.entries()) {
      const number = numberAt[place] ?? 0;
      if (item === undefined) continue;
      this.#items[number & mask] = item;
      this.#numberAt[number & mask] = number;
    }
  }
}

function emptied<T>(length: number): (T | undefined)[] {
  return Array.from({ length }, () => undefined);
}

/**
 * Resources that are no longer needed but not closed yet. Dispose it to close them all and
 * wait until they are closed.
 */
export class ClosingSet implements AsyncDisposable {
  /** Resources that are still in use. */
  readonly #retired = new Set<AsyncDisposable>();
  readonly #closing = new Set<Promise<void>>();

  /** Closes a resource. Resolves when it is closed; errors while closing are ignored. */
  close(resource: AsyncDisposable): Promise<void> {
    this.#retired.delete(resource);
    const closed: Promise<void> = Promise.resolve(resource[Symbol.asyncDispose]())
      .catch(() => {})
      .then(() => void this.#closing.delete(closed));
    this.#closing.add(closed);
    return closed;
  }

  /** Closes a resource when `idle` resolves, or when the set is disposed. */
  closeWhenIdle(resource: AsyncDisposable, idle: Promise<unknown>): void {
    this.#retired.add(resource);
    void idle.then(() => (this.#retired.has(resource) ? this.close(resource) : undefined));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const resource of this.#retired) void this.close(resource);
    await Promise.all(this.#closing);
  }
}

/** Sets the newest entry of a map that has `most` entries at most: the oldest makes room. */
export function setNewest<Key, Value>(map: Map<Key, Value>, key: Key, value: Value, most: number): void {
  map.delete(key);
  map.set(key, value);
  if (map.size > most) map.delete(map.keys().next().value as Key);
}
