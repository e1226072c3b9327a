import { fork } from "node:child_process";
import { type Line, type Row, type Scale, seed, toText } from "../lib/row.ts";
import { runSeed, type SeedResult } from "../simulation/run-seed.ts";

/** What a part of the seeds came to. */
interface Tally {
  readonly seeds: number;
  readonly steps: number;
  readonly calls: number;
  readonly results: number;
  readonly kills: number;
  readonly failed: readonly Pick<SeedResult, "seed" | "faults">[];
}

async function runSeeds(first: number, count: number): Promise<Tally> {
  const tally = { seeds: 0, steps: 0, calls: 0, results: 0, kills: 0 };
  const failed: Pick<SeedResult, "seed" | "faults">[] = [];
  for (let each = first; each < first + count; each++) {
    const { steps, calls, results, kills, faults } = await runSeed(each);
    tally.seeds++;
    tally.steps += steps;
    tally.calls += calls;
    tally.results += results;
    tally.kills += kills;
    if (tally.seeds % 10_000 === 0) console.log(`     simulation: ${tally.seeds} of ${count} seeds`);
    if (faults.length > 0) {
      failed.push({ seed: each, faults });
      console.log(`seed ${each}: ${faults[0]}`);
    }
  }
  return { ...tally, failed };
}

/** A part of the seeds in a process of its own, because the machine has two cores. With much room for what is short-lived. */
function runElsewhere(first: number, count: number): Promise<Tally> {
  const child = fork(process.argv[1]!, ["simulation", `${first}+${count}`], {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
    execArgv: ["--max-semi-space-size=64"],
  });
  process.once("disconnect", () => child.kill("SIGKILL"));
  return new Promise((resolve, reject) => {
    child.once("message", (tally) => resolve((tally as { readonly lines: Tally }).lines));
    child.once("exit", (code) => reject(new Error(`a part of the simulation ended with ${code}`)));
  });
}

async function replay(): Promise<readonly Line[]> {
  const { faults, trace, calls } = await runSeed(seed);
  for (const line of trace) console.log(line);
  const figure = faults.length === 0 ? "every invariant held" : faults.join("; ");
  return [
    {
      what: `seed ${seed} alone`,
      count: `${calls} calls`,
      bound: "0 faults",
      figure,
      isMet: faults.length === 0,
    },
  ];
}

async function run(scale: Scale | `${number}+${number}`): Promise<readonly Line[]> {
  if (process.env["SCORECARD_REPLAY"] === "yes") return replay();
  if (scale !== "full" && scale !== "short") {
    // The process that wants the result is gone.
    process.once("disconnect", () => process.exit(1));
    const [first = 0, count = 0] = scale.split("+").map(Number);
    return (await runSeeds(first, count)) as unknown as readonly Line[];
  }
  const count = scale === "full" ? 100_000 : 600;
  const half = Math.ceil(count / 2);
  const parts = await Promise.all([runElsewhere(seed, half), runElsewhere(seed + half, count - half)]);
  const sum = (key: "seeds" | "steps" | "calls" | "results" | "kills"): number =>
    parts.reduce((total, part) => total + part[key], 0);
  const failed = parts.flatMap((part) => part.failed);
  const [first] = failed;
  const broken =
    first === undefined
      ? ""
      : `; first: seed ${first.seed}, ${first.faults[0]}, replay with \`npm run proof -- attacks --only simulation --replay ${first.seed}\``;
  return [
    {
      what: "line, pool, parking, session and resumption together",
      count: `${toText(sum("seeds"))} seeds from ${seed}, ${toText(sum("steps"))} steps, ${toText(sum("calls"))} calls, ${toText(sum("kills"))} kills`,
      bound: "0 seeds break an invariant",
      figure: `${failed.length} seeds, ${toText(sum("results"))} calls had their result${broken}`,
      isMet: failed.length === 0,
    },
  ];
}

export const row: Row = {
  title: "Deterministic simulation",
  how:
    "The real classes of the gateway (`Upstream`, `Pool`, `Connection`, `Parking`, `SessionTable`, `ResumableStream`, the HTTP endpoint and the client) run on a " +
    "virtual clock with virtual processes and wires. A seed decides the config, the calls of five callers of both eras, and the faults: kills, freezes, failed " +
    "starts, broken wires, stalled readers, lost frames, abandoned questions. Checked after each step: a call reaches the server at most once, ends exactly " +
    "once and with its own answer, questions and progress come to their own call only, in order and once; limits of processes, parked calls and sessions " +
    "hold. At the end no call, process, timer, parked call, stream or connection is left.",
  limitMinutes: 240,
  isInShort: true,
  run: (scale) => run(scale),
};
