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

  /** Takes something in, and says which number it has. */
  add(item: T): number {
    if (2 * this.#size >= this.#items.length) this.#grow();
    const mask = this.#items.length - 1;
    let number = this.#last + 1;
    // A number whose place is taken by an older item is left out.
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

  /** Lets go of it; false when it was not there. */
  delete(number: number): boolean {
    if (this.get(number) === undefined) return false;
    this.#items[number & (this.#items.length - 1)] = undefined;
    this.#size--;
    return true;
  }

  /** Everything there is at this moment, in no order. */
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

/** Sets the newest entry of a map that has `most` entries at most: the oldest makes room. */
export function setNewest<Key, Value>(map: Map<Key, Value>, key: Key, value: Value, most: number): void {
  map.delete(key);
  map.set(key, value);
  if (map.size > most) map.delete(map.keys().next().value as Key);
}
