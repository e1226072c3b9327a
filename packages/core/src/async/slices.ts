/** Longest slice of work. Then other work has its turn. */
const sliceMs = 0.25;

/** The first 100 slices (25 ms) follow each other at once, so most lists are read soon. Before each later slice there is a pause. */
const promptSlices = 100;
const pauseMs = 2;

/**
 * Cuts long work into slices. Call the function before each step: it gives a promise to await where other work is to have its
 * turn. Very long work takes one part in ten of the time, so that calls beside it are hardly slower.
 */
export function createSlices(): () => Promise<void> | undefined {
  let slices = 0;
  let endsAt = performance.now() + sliceMs;
  return () => {
    if (performance.now() <= endsAt) return undefined;
    slices++;
    return new Promise((resolve) => {
      const goOn = (): void => {
        endsAt = performance.now() + sliceMs;
        resolve();
      };
      if (slices > promptSlices) setTimeout(goOn, pauseMs);
      else setImmediate(goOn);
    });
  };
}
