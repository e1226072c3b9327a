/** A work that is done for inputs of two sizes. */
export interface Growth {
  readonly small: number;
  readonly large: number;
  readonly work: (size: number) => unknown;
}

/**
 * How many times as long the work takes for the large input as for the small one: the shortest run of each, of those that
 * take turns in some rounds. A busy machine makes runs longer, and never all of them. Stops once the growth is below
 * `enough`.
 */
export function growthOf({ small, large, work }: Growth, enough: number): number {
  for (const size of [small, large]) work(size); // To warm up.
  let [leastSmall, leastLarge] = [Infinity, Infinity];
  for (let round = 0; round < maxRounds; round++) {
    leastSmall = Math.min(leastSmall, costOf(work, small));
    leastLarge = Math.min(leastLarge, costOf(work, large));
    if (round > 0 && leastLarge / leastSmall < enough) break;
  }
  return leastLarge / leastSmall;
}

const maxRounds = 24;
/** Long beside what the clock resolves, short beside what the system gives a process at a time. */
const minCostMs = 0.5;

/** How long one run takes, in ms; short ones are repeated. */
export function costOf<T extends readonly unknown[]>(run: (...args: T) => unknown, ...args: T): number {
  const startedAt = performance.now();
  for (let runs = 1; ; runs++) {
    run(...args);
    const ms = performance.now() - startedAt;
    if (ms >= minCostMs) return ms / runs;
  }
}
