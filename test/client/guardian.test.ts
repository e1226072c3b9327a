import { expect, test } from "vitest";
import { createGuardian } from "../../packages/client/src/child/guardian.ts";

/** A helper that is given no reason to stay, and how often it is started. The clock moves on at each look at it. */
function start(stepMs: number): { readonly looks: () => number; readonly release: () => void } {
  let now = 1_000_000;
  let looks = 0;
  const clock = {
    now: () => {
      looks++;
      return (now += stepMs);
    },
    date: () => now,
    timer: () => () => {},
  };
  const { release } = createGuardian({ shell: "/bin/true", clock }).watch(() => ({ pid: 2 ** 30 }));
  return { looks: () => looks, release };
}

// Each life of a helper is two looks at the clock: at its start and at its end.
test.runIf(process.platform === "linux")(
  "a helper that ends is started again while there is a child",
  async () => {
    const { looks, release } = start(1000);
    await expect.poll(looks).toBeGreaterThan(2 * 8);
    release();
  },
);

test.runIf(process.platform === "linux")("one that ends at once, again and again, is not", async () => {
  const quick = start(0);
  await expect.poll(quick.looks).toBe(2 * 5);
  const slow = start(1000);
  await expect.poll(slow.looks).toBeGreaterThan(2 * 5);
  expect(quick.looks()).toBe(2 * 5);
  slow.release();
  quick.release();
});
