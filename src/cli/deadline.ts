/** How long a command may take in all. Dispose it when the command is done. */
export interface Deadline extends Disposable {
  readonly timeoutMs: number;
  /** Aborts when the time is over. */
  readonly signal: AbortSignal;
}

export function startDeadline(timeoutMs: number): Deadline {
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(), timeoutMs);
  return { timeoutMs, signal: controller.signal, [Symbol.dispose]: () => clearTimeout(timer) };
}
