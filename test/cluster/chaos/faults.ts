import { setTimeout as pause } from "node:timers/promises";
import type { Replica } from "../support/gateway-process.ts";
import type { Stage } from "../support/stage.ts";

/** Something that goes wrong, or is done, while calls are made. */
export type FaultName =
  | "kill -9"
  | "stop and go on"
  | "cut trunks"
  | "engine killed"
  | "engine stopped"
  | "rolling restart";

interface Chance {
  readonly random: () => number;
}

/** A whole number from `min` to `max`. */
export function between({ random }: Chance, min: number, max: number): number {
  return min + Math.floor(random() * (max - min + 1));
}

const faults: { readonly [Name in FaultName]: (stage: Stage, chance: Chance) => Promise<void> } = {
  "kill -9": async (stage, chance) => {
    const replica = pick(stage, chance);
    await replica.end("SIGKILL");
    await pause(between(chance, 0, 3000));
    await replica.start();
  },
  "stop and go on": async (stage, chance) => {
    const replica = pick(stage, chance);
    replica.signal("SIGSTOP");
    await pause(between(chance, 500, 14_000));
    replica.signal("SIGCONT");
  },
  "cut trunks": async ({ replicas }, chance) => {
    for (let count = between(chance, 1, 20); count > 0; count--) {
      for (const replica of replicas) replica.cutTrunk();
      await pause(between(chance, 0, 200));
    }
  },
  "engine killed": async ({ engine }, chance) => {
    await engine.kill();
    await pause(between(chance, 0, 10_000));
    await engine.start();
  },
  "engine stopped": async ({ engine }, chance) => {
    engine.signal("SIGSTOP");
    await pause(between(chance, 500, 10_000));
    engine.signal("SIGCONT");
  },
  "rolling restart": async ({ replicas }) => {
    for (const replica of replicas) {
      await replica.end("SIGTERM");
      await replica.start();
    }
  },
};

const names = Object.keys(faults) as FaultName[];

function pick({ replicas }: Stage, chance: Chance): Replica {
  return replicas[between(chance, 0, replicas.length - 1)]!;
}

/** Makes one thing after the other go wrong until the time is over: chosen by the seed, a rolling restart each minute. */
export async function makeTrouble(
  stage: Stage,
  random: () => number,
  untilMs: number,
): Promise<ReadonlyMap<FaultName, number>> {
  const chance = { random };
  const counts = new Map<FaultName, number>(names.map((name) => [name, 0]));
  let rolledAt = performance.now();
  const beganAt = performance.now();
  const isOver = (): boolean => performance.now() > untilMs;
  while (!isOver()) {
    await pause(between(chance, 500, 3000));
    const isRolling = performance.now() - rolledAt > 45_000;
    const name = isRolling ? "rolling restart" : names[between(chance, 0, names.length - 2)]!;
    console.log(`${((performance.now() - beganAt) / 1000).toFixed(1).padStart(7)} s  ${name}`);
    await faults[name](stage, chance);
    counts.set(name, counts.get(name)! + 1);
    if (isRolling) rolledAt = performance.now();
  }
  return counts;
}
