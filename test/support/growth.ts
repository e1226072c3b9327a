/** How many times as long the work takes for the large input as for the small one, in time of the processor. */
export interface Growth {
  readonly small: number;
  readonly large: number;
  readonly work: (size: number) => unknown;
}

/**
 * The least growth seen in a few rounds. Small and large inputs take turns, and each is repeated until it has used enough
 * of the processor to be measured, so other programs on the machine have little to do with it. Stops early once the growth
 * is below `enough`.
 */
export function growthOf({ small, large, work }: Growth, enough: number): number {
  for (const size of [small, large]) work(size); // To warm up.
  let [least, leastLarge] = [Infinity, Infinity];
  for (let round = 0; round < maxRounds; round++) {
    least = Math.min(
      least,
      costOf(() => work(small)),
    );
    leastLarge = Math.min(
      leastLarge,
      costOf(() => work(large)),
    );
    if (round > 0 && leastLarge / least < enough) break;
  }
  return leastLarge / least;
}

const maxRounds = 24;
const minCostMs = 2;

/** What one run takes of the processor, in ms. */
function costOf(run: () => unknown): number {
  const before = process.cpuUsage();
  for (let runs = 1; ; runs++) {
    run();
    const { user, system } = process.cpuUsage(before);
    const ms = (user + system) / 1000;
    if (ms >= minCostMs) return ms / runs;
  }
}
