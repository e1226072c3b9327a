const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/**
 * Resolves when this process is asked to stop: Ctrl-C, `kill`, or a terminal that is closed. A second signal ends it at
 * once, as it would without us.
 */
export function untilSignal(): Promise<void> {
  return new Promise((resolve) => {
    const stop = (): void => {
      for (const signal of signals) process.off(signal, stop);
      resolve();
    };
    for (const signal of signals) process.on(signal, stop);
  });
}
