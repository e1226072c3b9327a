/** @param {readonly number[]} values */
export function median(values) {
  return quantile(values, 0.5);
}

/**
 * Interpolates between the neighbours. NaN for no values.
 *
 * @param {readonly number[]} values
 * @param {number} share between 0 and 1
 */
export function quantile(values, share) {
  const sorted = values.toSorted((a, b) => a - b);
  const position = (sorted.length - 1) * share;
  const below = sorted[Math.floor(position)] ?? NaN;
  const above = sorted[Math.ceil(position)] ?? NaN;
  return below + (above - below) * (position - Math.floor(position));
}

/**
 * The median with what it was taken from: the least and the most.
 *
 * @param {readonly number[]} values
 */
export function spread(values) {
  return { median: median(values), min: Math.min(...values), max: Math.max(...values) };
}

/**
 * How many times one cost the other, round by round: what disturbs a round disturbs both.
 *
 * @param {readonly number[]} values
 * @param {readonly number[]} others
 */
export function ratios(values, others) {
  return values.slice(0, others.length).map((value, round) => value / (others[round] ?? NaN));
}
