/** A value, or a promise of it. Most tools answer at once, and a needless promise costs time. */
export type Awaitable<T> = T | Promise<T>;

/**
 * Whether a value of our own must be waited for. Values of user code go through {@link settled} first: they may be
 * other kinds of promises, and a look for `then` on every value costs more than most calls that return one.
 */
export function isPromise<T>(value: Awaitable<T>): value is Promise<T> {
  return value instanceof Promise;
}

/** The value of user code, with any kind of thenable turned into a promise, as `await` would. */
export function settled<T>(value: Awaitable<T>): Awaitable<T> {
  if (value instanceof Promise || typeof value !== "object" || value === null) return value;
  const { then } = value as { readonly then?: unknown };
  return typeof then === "function" ? Promise.resolve(value) : value;
}

/** Calls `next` with a value: at once, or when its promise resolves. */
export function andThen<T, U>(value: Awaitable<T>, next: (value: T) => Awaitable<U>): Awaitable<U> {
  return isPromise(value) ? value.then(next) : next(value);
}

/** Runs `work`, and `rescue` if it throws or rejects. */
export function recover<T>(work: () => Awaitable<T>, rescue: (error: unknown) => Awaitable<T>): Awaitable<T> {
  try {
    const value = work();
    return isPromise(value) ? value.catch(rescue) : value;
  } catch (error) {
    return rescue(error);
  }
}

/** Runs `work`, then `next` with its value, and `rescue` if either fails: one promise for all of it. */
export function tryThen<T, U>(
  work: () => Awaitable<T>,
  next: (value: T) => Awaitable<U>,
  rescue: (error: unknown) => Awaitable<U>,
): Awaitable<U> {
  const goOn = (value: T): Awaitable<U> => recover(() => next(value), rescue);
  let value: Awaitable<T>;
  try {
    value = work();
  } catch (error) {
    return rescue(error);
  }
  return isPromise(value) ? value.then(goOn, rescue) : goOn(value);
}

/** Calls `end` before the promise settles, whichever way: `finally` without its three promises. */
export function ending<T>(promise: Promise<T>, end: () => void): Promise<T> {
  return promise.then(
    (value) => {
      end();
      return value;
    },
    (error: unknown) => {
      end();
      throw error;
    },
  );
}
