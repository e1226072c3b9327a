import { waitFor } from "./clock.ts";

/** Use `waitFor`: this goes when nothing uses it any more. */
export function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return waitFor(promise, { signal });
}
