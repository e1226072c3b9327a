/** Upper bounds of the buckets in seconds: those of the OpenTelemetry conventions for MCP, and 1, 2 and 5 ms. */
export const bucketBounds: readonly number[] = [
  0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300,
];

/** Finer bounds for quantiles. The first ones are below those of the buckets, which are all in here. */
const fineBounds: readonly number[] = [0.0001, 0.0002, 0.0005, ...bucketBounds];
const fineOnly = fineBounds.length - bucketBounds.length;

/** How many calls took how long. Counts only grow. */
export class Durations {
  /** By fine bucket; the last one is for everything above the last bound. */
  readonly counts: Float64Array = new Float64Array(fineBounds.length + 1);
  sumSeconds = 0;
  count = 0;

  add(seconds: number): void {
    let bucket = 0;
    while (seconds > (fineBounds[bucket] ?? Infinity)) bucket++;
    this.counts[bucket] = (this.counts[bucket] ?? 0) + 1;
    this.sumSeconds += seconds;
    this.count++;
  }

  /** For each bound, how many took no longer: the buckets as Prometheus wants them, without the one for all. */
  cumulative(): readonly number[] {
    let sum = 0;
    return Array.from(this.counts.subarray(0, fineBounds.length), (count) => (sum += count)).slice(fineOnly);
  }
}

/** The quantile of counts by fine bucket, in seconds, interpolated inside its bucket; undefined when there are none. */
export function quantileOf(counts: Float64Array, quantile: number): number | undefined {
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total === 0) return undefined;
  const rank = quantile * total;
  let before = 0;
  for (const [bucket, count] of counts.entries()) {
    if (count > 0 && before + count >= rank) {
      const lower = bucket === 0 ? 0 : (fineBounds[bucket - 1] ?? 0);
      const upper = fineBounds[bucket] ?? lower;
      return lower + ((upper - lower) * (rank - before)) / count;
    }
    before += count;
  }
  return fineBounds.at(-1);
}

/** Counts of nothing. */
export function noCounts(): Float64Array {
  return new Float64Array(fineBounds.length + 1);
}
