/** A request to stop something: an `AbortSignal` that costs nothing until one is needed. */
export interface Cancellation {
  readonly isAborted: boolean;
  /** Why; undefined as long as it is not aborted. */
  readonly reason: unknown;
  /** The same as a signal, for code that needs one. Made when it is first read. */
  readonly signal: AbortSignal;
  /** Calls back once when it is aborted, unless {@link Cancellation.offAbort} comes first. */
  onAbort(callback: () => void): void;
  offAbort(callback: () => void): void;
}

/** A signal as a cancellation. */
export function fromSignal(signal: AbortSignal): Cancellation {
  return {
    signal,
    get isAborted() {
      return signal.aborted;
    },
    get reason(): unknown {
      return signal.reason as unknown;
    },
    onAbort: (callback) => signal.addEventListener("abort", callback, { once: true }),
    offAbort: (callback) => signal.removeEventListener("abort", callback),
  };
}
