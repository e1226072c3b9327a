import { expect } from "vitest";

/** Resolves when a number has not changed for a while: whatever moved it has come to a halt. */
export async function standsStill(read: () => number): Promise<void> {
  let last = -1;
  let since = performance.now();
  const idleMs = (): number => {
    const now = read();
    if (now !== last) since = performance.now();
    last = now;
    return performance.now() - since;
  };
  await expect.poll(idleMs, { interval: 5 }).toBeGreaterThan(100);
}
