import { createCallContext } from "../../packages/core/src/provider/context.ts";
import { createOperation } from "../../packages/core/src/provider/operation.ts";
import { createSharedRateLimit } from "../../packages/junctor/src/cluster/shared-rate-limit.ts";
import type { ClusterStore } from "../../packages/junctor/src/cluster/store.ts";
import type { VirtualClock } from "../../packages/junctor/src/testing/virtual-clock.ts";
import { createRandom } from "./random.ts";

interface SpreadOptions {
  readonly seed: number;
  readonly callsPerMinute: number;
  /** The part of its limit that the caller uses; above 1 for a caller that must be refused. */
  readonly share: number;
  readonly minutes: number;
  /** By replica, its way to the tokens. Their limits must go by the clock. */
  readonly stores: readonly Pick<ClusterStore, "take">[];
  readonly clock: VirtualClock;
}

interface SpreadResult {
  readonly calls: number;
  readonly refused: number;
  /** Operations on the store. */
  readonly operations: number;
  /** The most calls that were allowed in any stretch of time, less those that the rate gives back in it: no more than the burst in an exact limit. */
  readonly peak: number;
}

/**
 * One caller calls replicas with a shared limit. Its calls come evenly, by chance, or in bursts, and it goes to all replicas or stays with some; both change all the
 * time. It never makes more calls than a limit of its share would allow.
 */
export async function runSpread(options: SpreadOptions): Promise<SpreadResult> {
  const { seed, callsPerMinute, share, minutes, stores, clock } = options;
  const random = createRandom(Math.imul(seed + 1, 0x9e3779b1) >>> 0);
  const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)]!;
  const result = { calls: 0, refused: 0, operations: 0, peak: 0 };
  const calls = stores.map((store) => {
    const take: ClusterStore["take"] = (limit, count) => {
      result.operations++;
      return store.take(limit, count);
    };
    const source = { take, replicas: () => stores.length };
    const { middleware } = createSharedRateLimit({ rates: [[undefined, { callsPerMinute }]], source, clock });
    return async (): Promise<boolean> => {
      try {
        const call = createOperation("tools/call", "t");
        await middleware.beforeCall?.(call, createCallContext({ caller: `caller ${seed}` }));
        return true;
      } catch (error) {
        if ((error as { code?: string }).code !== "tool.rate_limited") throw error;
        return false;
      }
    };
  });

  const perMs = callsPerMinute / 60_000;
  const most = Math.max(1, share * callsPerMinute);
  const endsAt = clock.now() + minutes * 60_000;
  let left = most;
  let backlog = 0;
  while (clock.now() < endsAt) {
    const habit = pick(["even", "chance", "burst"] as const);
    const visited = calls.filter(() => random() < 0.7);
    for (let step = Math.ceil(random() * 30); step > 0; step--) {
      const count = habit === "burst" ? Math.floor(1 + random() * (most - 1)) : 1;
      const factor = { even: 1, chance: -Math.log(1 - random()), burst: 0 }[habit];
      // What its share gives back meanwhile must be enough for its calls.
      const passMs = Math.max(factor, count - left) / (perMs * share);
      await clock.advance(passMs);
      left = Math.min(most, left + passMs * perMs * share);
      backlog = Math.max(0, backlog - passMs * perMs);
      const made = Array.from({ length: count }, () => pick(visited.length === 0 ? calls : visited)());
      const allowed = (await Promise.all(made)).filter(Boolean).length;
      left -= count;
      backlog += allowed;
      result.calls += count;
      result.refused += count - allowed;
      result.peak = Math.max(result.peak, backlog);
    }
  }
  return result;
}
