import { mkdirSync, writeFileSync } from "node:fs";
import { cpus, release, totalmem } from "node:os";
import { join } from "node:path";
import { absences } from "../absences.mjs";
import { median, spread } from "./statistics.mjs";
import { toSvg } from "./svg.mjs";

/** @typedef {import("./run.mjs").Run} Run */
/** @typedef {import("../goals.mjs").Verdict} Verdict */

/**
 * Writes bench.json and bench.svg.
 *
 * @param {Run} run
 * @param {readonly Verdict[]} verdicts
 * @param {string} folder
 */
export function writeReport(run, verdicts, folder) {
  mkdirSync(folder, { recursive: true });
  const report = toReport(run, verdicts);
  writeFileSync(join(folder, "bench.json"), toJson(report));
  writeFileSync(join(folder, "bench.svg"), toSvg(run, describeMachine()));
}

/** Laid out as the formatter would: a list of numbers on one line. @param {object} value */
function toJson(value) {
  const text = JSON.stringify(value, undefined, 2);
  return `${text.replace(/\[\s+([\d.,\s-]+?)\s+\]/g, (_, list) => `[${String(list).replace(/\s+/g, " ")}]`)}\n`;
}

/** When and where a run was made, in a few words. */
export function describeMachine() {
  const { date, node, cpu, cores } = machine();
  return `${date}, Node ${node}, ${cores} × ${cpu}`;
}

function machine() {
  return {
    date: new Date().toISOString().slice(0, 10),
    node: process.versions.node,
    cpu: cpus()[0]?.model.trim() ?? "unknown",
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    system: `${process.platform} ${release()}`,
  };
}

/** @param {Run} run @param {readonly Verdict[]} verdicts */
function toReport(run, verdicts) {
  return {
    ...machine(),
    seconds: Math.round(run.elapsedMs / 1000),
    plans: run.plans,
    units: {
      cpu: "µs of CPU a call",
      perSecond: "calls a second",
      p50: "ms",
      p99: "ms",
      peak: "MiB",
      startup: "ms",
    },
    contests: run.contests.map(({ section, name, standings }) => ({
      section,
      name,
      systems: standings.map(({ name, figures, peakBytes, problem }) =>
        figures.length === 0
          ? { name, problem }
          : {
              name,
              cpu: roundAll(spread(figures.map(({ cpu }) => cpu))),
              perSecond: round(median(figures.map(({ perSecond }) => perSecond))),
              p50: round(median(figures.map(({ p50 }) => p50))),
              p99: round(median(figures.map(({ p99 }) => p99))),
              peak: round(peakBytes / 2 ** 20),
              cpuByRound: figures.map(({ cpu }) => round(cpu)),
            },
      ),
    })),
    startup: run.races.map(({ name, times }) => ({
      name,
      systems: times.map(({ name, ms, problem }) =>
        ms.length === 0 ? { name, problem } : { name, ...roundAll(spread(ms)) },
      ),
    })),
    footprints: run.footprints.map(({ name, bytes, packages }) => ({
      name,
      mebibytes: round(bytes / 2 ** 20),
      packages,
    })),
    absences,
    goals: verdicts.map(({ reached, ...verdict }) => ({
      ...verdict,
      reached: reached === undefined ? null : round(reached),
    })),
  };
}

/** @param {{ median: number, min: number, max: number }} values */
function roundAll({ median, min, max }) {
  return { median: round(median), min: round(min), max: round(max) };
}

/** @param {number} value */
function round(value) {
  return Number(value.toPrecision(4));
}
