/** How long work may take before anything else has its turn, and after how many steps that is looked at. */
const sliceMs = 5;
const sliceSteps = 16;

/**
 * Cuts long work into slices. Call the function before each step: it gives a promise to await where other work is to have its
 * turn.
 */
export function createSlices(): () => Promise<void> | undefined {
  let steps = 0;
  let endsAt = performance.now() + sliceMs;
  return () => {
    if (steps++ % sliceSteps !== 0 || performance.now() <= endsAt) return undefined;
    return new Promise((resolve) => {
      setImmediate(() => {
        endsAt = performance.now() + sliceMs;
        resolve();
      });
    });
  };
}
