import { Callers } from "./load.ts";
import { startRunningTime } from "./running-time.ts";

/** What calls of good servers cost in one slice of time. */
export interface Slice {
  /** For 99 of 100 calls the main thread ran no longer than this, from their beginning to their end. */
  readonly p99Ms: number;
  /** Half of the calls took no longer than this by the clock, without waits for a processor. */
  readonly medianMs: number;
  readonly failures: number;
}

/**
 * Calls `near__work`, one call after the other, as clients of both eras, and `child__work` now and then. Only the first is measured: all its work, of
 * client and gateway, is done by this process. The child only has to answer.
 */
export async function measureSlice(port: number, calls: number): Promise<Slice> {
  using modern = new Callers(port, undefined);
  using legacy = await Callers.legacy(port);
  const runningMs: number[] = [];
  const clockMs: number[] = [];
  let failures = 0;
  for (let call = 0; call < calls; call++) {
    const callers = call % 2 === 0 ? modern : legacy;
    if (call % 20 < 2 && (await callers.call("child__work", { nonce: "n" })).kind !== "result") failures++;
    const measured = startRunningTime();
    if ((await callers.call("near__work", {})).kind !== "result") failures++;
    const took = measured();
    runningMs.push(took.runningMs);
    clockMs.push(took.clockMs);
  }
  return { p99Ms: quantile(runningMs, 0.99), medianMs: quantile(clockMs, 0.5), failures };
}

export function medianOf(slices: readonly Slice[], key: keyof Slice): number {
  return quantile(
    slices.map((slice) => slice[key]),
    0.5,
  );
}

export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]!;
}
