import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { connectRedisStore } from "../../packages/junctor/src/cluster/redis-store.ts";
import type { ClusterStore } from "../../packages/junctor/src/cluster/store.ts";
import { createVirtualClock, type VirtualClock } from "../../packages/junctor/src/testing/virtual-clock.ts";
import { freePort } from "../support/free-ports.ts";
import { runSpread } from "../support/limit-spread.ts";
import { type Engine, startEngine } from "./support/engine.ts";
import { isSkipped } from "./support/skip.ts";
import { secret } from "./support/stage.ts";

describe.skipIf(isSkipped)("three replicas with a limit and a real engine", () => {
  const folder = mkdtempSync(join(tmpdir(), "junctor-limits-"));
  const clock: VirtualClock = createVirtualClock(1_000_000);
  let engine: Engine;
  let stores: readonly ClusterStore[];
  beforeAll(async () => {
    engine = await startEngine(await freePort(), folder);
    const connect = () => connectRedisStore({ url: engine.url, secrets: [secret], limitClock: clock });
    stores = await Promise.all([connect(), connect(), connect()]);
  });
  afterAll(async () => {
    await Promise.all(stores.map((store) => store[Symbol.asyncDispose]()));
    await engine[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });

  test("refuse no call of a caller at 90 % of its limit, in 100 spreads of its calls over them", async () => {
    const limits = [1, 7, 20, 60, 120, 300];
    const spreads = Array.from({ length: 100 }, (_, seed) => ({
      seed,
      callsPerMinute: limits[seed % limits.length]!,
    }));
    let calls = 0;
    const refused: object[] = [];
    for (const spread of spreads) {
      const result = await runSpread({ ...spread, share: 0.9, minutes: 10, stores, clock });
      calls += result.calls;
      if (result.refused > 0) refused.push({ ...spread, ...result });
    }
    expect(calls).toBeGreaterThan(10_000);
    expect(refused).toEqual([]);
  });

  test("hold a caller at three times its limit to it, and a tenth of the burst more in any stretch of time", async () => {
    for (const [seed, callsPerMinute] of [7, 20, 60, 120, 300].entries()) {
      const spread = { seed: 1000 + seed, callsPerMinute, share: 3, minutes: 10 };
      const { peak, refused } = await runSpread({ ...spread, stores, clock });
      expect(refused).toBeGreaterThan(0);
      expect(peak).toBeLessThanOrEqual(callsPerMinute + Math.floor(callsPerMinute / 10) + 1e-3);
    }
  });
});
