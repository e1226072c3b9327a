/** A turnstile: each `step` waits until it was allowed. A test and the tool it drives take turns by it. */
export interface Steps {
  step(signal?: AbortSignal): Promise<void>;
  allow(count?: number): void;
  /** How many wait. */
  readonly waiting: number;
}

export function createSteps(): Steps {
  const waiting: (() => void)[] = [];
  let allowed = 0;
  return {
    get waiting() {
      return waiting.length;
    },
    step: (signal) =>
      new Promise((resolve, reject) => {
        if (allowed > 0) {
          allowed--;
          return resolve();
        }
        waiting.push(resolve);
        const leave = (): void => {
          const index = waiting.indexOf(resolve);
          if (index !== -1) waiting.splice(index, 1);
          reject(signal?.reason);
        };
        signal?.addEventListener("abort", leave, { once: true });
      }),
    allow: (count = 1) => {
      for (let index = 0; index < count; index++) {
        const next = waiting.shift();
        if (next === undefined) allowed++;
        else next();
      }
    },
  };
}
