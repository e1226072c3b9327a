import fc from "fast-check";
import { expect, test } from "vitest";
import { createRandom } from "../../../../test/support/random.ts";
import { runs } from "../../../../test/support/runs.ts";
import { createShakyProcess, type ShakyProcess } from "../../../../test/support/shaky-process.ts";
import { createVirtualClock } from "../testing/virtual-clock.ts";
import { type HeldLease, joinCluster, type Membership } from "./membership.ts";
import { createMemoryClusterStore } from "./memory-store.ts";

/** One process of the simulation, and the leases it believes it has. */
interface Owner {
  readonly process: ShakyProcess;
  readonly membership: Membership;
  readonly held: Map<string, HeldLease>;
}

const keys = ["own:a", "own:b"];

/** Runs a minute or two of three replicas that want the same leases. Returns how often a lease had an owner. */
async function simulate(seed: number): Promise<number> {
  const random = createRandom(seed);
  const clock = createVirtualClock(1000);
  await using engine = createMemoryClusterStore({ clock });
  const owners: Owner[] = [];
  for (let number = 0; number < 3; number++) {
    const weather = { random, rate: 0.9 + random() * 0.2, maxDelayMs: 1, failures: 0 };
    const process = createShakyProcess(clock, engine, weather);
    const joining = joinCluster({ ...process, address: { kind: "socket", path: "-" }, version: "1" });
    await clock.advance(300);
    owners.push({ process, membership: await joining, held: new Map() });
    weather.maxDelayMs = [5, 300, 4000][Math.floor(random() * 3)] ?? 5;
    weather.failures = random() * 0.4;
  }
  let owned = 0;
  for (let step = 0; step < 150; step++) {
    for (const owner of owners) act(owner, random);
    await clock.advance(Math.floor(random() * 800));
    for (const key of keys) owned += countOwners(owners, key);
  }
  for (const { process } of owners) if (process.isStopped) process.wake();
  const left = owners.map(({ membership }) => membership[Symbol.asyncDispose]());
  await clock.advance(10_000);
  await Promise.all(left);
  return owned;
}

/** Lets a process do one thing that it may do at this moment. */
function act({ process, membership, held }: Owner, random: () => number): void {
  const chance = random();
  if (process.isStopped) {
    if (chance < 0.05) process.wake();
    return;
  }
  if (chance < 0.03) return process.stop();
  const key = keys[Math.floor(random() * keys.length)] ?? "";
  const lease = held.get(key);
  if (lease?.isHeld === true) {
    if (chance < 0.1) void lease.release();
    return;
  }
  membership
    .hold(key, () => {})
    .then(
      (given) => void ("release" in given && held.set(key, given)),
      () => {},
    );
}

function countOwners(owners: readonly Owner[], key: string): number {
  const running = owners.filter(({ process }) => !process.isStopped);
  const having = running.filter(({ held }) => held.get(key)?.isHeld === true);
  expect(having.length).toBeLessThanOrEqual(1);
  return having.length;
}

test("no two replicas that count themselves in have the same lease, whatever happens to them", async () => {
  let owned = 0;
  await fc.assert(
    fc.asyncProperty(fc.nat(), async (seed) => {
      owned += await simulate(seed);
    }),
    { numRuns: runs(200) },
  );
  expect(owned).toBeGreaterThan(0);
});

test("a seed replays", async () => {
  expect(await simulate(4711)).toBe(await simulate(4711));
});
