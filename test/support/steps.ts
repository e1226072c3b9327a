/** A turnstile: each `step` waits until it was allowed. A test and the tool it drives take turns by it. */
export interface Steps {
  step(signal?: AbortSignal): Promise<void>;
  allow(count?: number): void;
}

export function createSteps(): Steps {
  const waiting: (() => void)[] = [];
  let allowed = 0;
  return {
    step: (signal) =>
      new Promise((resolve, reject) => {
        if (allowed > 0) {
          allowed--;
          return resolve();
        }
        waiting.push(resolve);
        signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
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
