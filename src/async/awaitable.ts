/** A value, or a promise of it. Most tools answer at once, and a promise where none is needed costs as much as a parse. */
export type Awaitable<T> = T | Promise<T>;

/** Goes on with a value: at once if it is there, else when it is. */
export function andThen<T, U>(value: Awaitable<T>, next: (value: T) => Awaitable<U>): Awaitable<U> {
  return value instanceof Promise ? value.then(next) : next(value);
}

/** Does something and, if that throws or rejects, something else. */
export function recover<T>(work: () => Awaitable<T>, rescue: (error: unknown) => Awaitable<T>): Awaitable<T> {
  try {
    const value = work();
    return value instanceof Promise ? value.catch(rescue) : value;
  } catch (error) {
    return rescue(error);
  }
}
