import { createRandom } from "../../../test/support/random.ts";

/** Decisions that are the same for the same seed. */
export interface Chance {
  /** A whole number from 0 up to, not including, the limit. */
  below(limit: number): number;
  /** True in so many of a hundred cases. */
  percent(share: number): boolean;
  pick<T>(items: readonly [T, ...T[]] | readonly T[]): T;
}

export function createChance(seed: number): Chance {
  // Seeds that follow each other begin alike; some rounds later they do not.
  const random = createRandom(Math.imul(seed, 0x9e3779b1) >>> 0);
  const below = (limit: number): number => Math.floor(random() * limit);
  return {
    below,
    percent: (share) => random() * 100 < share,
    pick: (items) => items[below(items.length)]!,
  };
}
