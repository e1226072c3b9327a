/** A value, or a promise of it. Most tools answer at once, and a promise where none is needed costs as much as a parse. */
export type Awaitable<T> = T | Promise<T>;

/** Whether a value must be waited for; anything with a `then` is, as for `await`. */
export function isPromise<T>(value: Awaitable<T>): value is Promise<T> {
  if (value instanceof Promise) return true;
  return (
    typeof value === "object" && value !== null && typeof (value as { then?: unknown }).then === "function"
  );
}

/** Goes on with a value: at once if it is there, else when it is. */
export function andThen<T, U>(value: Awaitable<T>, next: (value: T) => Awaitable<U>): Awaitable<U> {
  return isPromise(value) ? Promise.resolve(value).then(next) : next(value);
}

/** Does something and, if that throws or rejects, something else. */
export function recover<T>(work: () => Awaitable<T>, rescue: (error: unknown) => Awaitable<T>): Awaitable<T> {
  try {
    const value = work();
    return isPromise(value) ? Promise.resolve(value).catch(rescue) : value;
  } catch (error) {
    return rescue(error);
  }
}
