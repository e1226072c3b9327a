import { closeSync, openSync } from "node:fs";
import { BrandedError } from "@junctor/core/errors";

/** The exit code with which a shell reports a program ended by each signal: 128 plus its number. */
const exitCodes = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;

const signals = Object.keys(exitCodes) as (keyof typeof exitCodes)[];

/** The user ends the command: Ctrl-C, or a signal that asks it to end. */
export class Interrupt extends BrandedError {
  protected static override readonly brand = "Interrupt";

  override readonly name = "Interrupt";
  readonly code = "cli.interrupted";
  readonly exitCode: number;

  constructor(signal: keyof typeof exitCodes) {
    super("interrupted");
    this.exitCode = exitCodes[signal];
  }
}

/** A signal that aborts with an {@link Interrupt}. A second Ctrl-C ends the process at once, as it would without us. */
export interface Interruption extends Disposable {
  readonly signal: AbortSignal;
  /** For where Ctrl-C is read as a key. */
  interrupt(): void;
  /** Takes the next signal instead, with the exit code for it. */
  intercept?: ((exitCode: number) => void) | undefined;
}

export function watchInterrupt(): Interruption {
  const controller = new AbortController();
  const stop = (signal: keyof typeof exitCodes): void => {
    const { intercept } = interruption;
    if (intercept !== undefined) return intercept(exitCodes[signal]);
    unwatch();
    controller.abort(new Interrupt(signal));
  };
  const unwatch = (): void => {
    for (const signal of signals) process.off(signal, stop);
  };
  for (const signal of signals) process.on(signal, stop);
  const interruption: Interruption = {
    signal: controller.signal,
    interrupt: () => stop("SIGINT"),
    [Symbol.dispose]: unwatch,
  };
  return interruption;
}

/**
 * Resolves when this process is asked to stop: Ctrl-C, `kill`, or a terminal that is closed. A second signal ends it at
 * once, as it would without us. With `onHangup`, SIGHUP is passed to that instead, unless our terminal was closed.
 */
export function untilSignal(onHangup: () => (() => void) | undefined): Promise<void> {
  const hadTerminal = hasTerminal();
  return new Promise((resolve) => {
    const stop = (signal: NodeJS.Signals): void => {
      const other = signal === "SIGHUP" ? onHangup() : undefined;
      if (other !== undefined && hasTerminal() === hadTerminal) return other();
      for (const each of signals) process.off(each, stop);
      resolve();
    };
    for (const signal of signals) process.on(signal, stop);
  });
}

/** Whether this process has a terminal, wherever its streams lead. */
function hasTerminal(): boolean {
  try {
    closeSync(openSync("/dev/tty", "r"));
    return true;
  } catch {
    return false;
  }
}
