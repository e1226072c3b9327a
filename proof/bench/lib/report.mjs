import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { cpus, release, totalmem } from "node:os";
import { join } from "node:path";
import { absences } from "../absences.mjs";
import { toMarkdown, withReport } from "./markdown.mjs";
import { median, spread } from "./statistics.mjs";
import { toSvg } from "./svg.mjs";

/** @typedef {import("./run.mjs").Run} Run */
/** @typedef {import("../goals.mjs").Verdict} Verdict */
/** @typedef {{ median: number, min: number, max: number }} Spread */
/** @typedef {{ name: string, problem?: string | undefined, cpu?: Spread, perSecond?: number, p50?: number, p99?: number, peak?: number, cpuByRound?: number[] }} SystemFigures */
/** @typedef {{ name: string, problem?: string | undefined, ms?: Spread }} SystemTimes */
/** @typedef {Omit<Verdict, "reached"> & { reached: number | null }} ReportedVerdict */
/**
 * What bench.json holds.
 *
 * @typedef {ReturnType<typeof machine> & {
 *   seconds: number,
 *   plans: import("./run.mjs").Plans,
 *   units: Record<string, string>,
 *   contests: { section: string, name: string, systems: SystemFigures[] }[],
 *   startup: { name: string, systems: SystemTimes[] }[],
 *   footprints: { name: string, mebibytes: number, packages: number }[],
 *   absences: readonly string[],
 *   goals: ReportedVerdict[],
 * }} Report
 */

/**
 * Writes bench.json and bench.svg.
 *
 * @param {Report} report
 * @param {string} folder
 */
export function writeReport(report, folder) {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "bench.json"), toJson(report));
  writeFileSync(join(folder, "bench.svg"), toSvg(report, describeMachine(report)));
}

/** Puts the tables into a page, between its two markers. @param {Report} report @param {string} page */
export function writePage(report, page) {
  writeFileSync(page, withReport(readFileSync(page, "utf8"), toMarkdown(report, describeMachine(report))));
}

/** Laid out as the formatter would: a list of numbers on one line. @param {object} value */
function toJson(value) {
  const text = JSON.stringify(value, undefined, 2);
  return `${text.replace(/\[\s+([\d.,\s-]+?)\s+\]/g, (_, list) => `[${String(list).replace(/\s+/g, " ")}]`)}\n`;
}

/** When and where a run was made, in a few words. */
export function describeMachine({ date, node, cpu, cores } = machine()) {
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

/** @param {Run} run @param {readonly Verdict[]} verdicts @returns {Report} */
export function toReport(run, verdicts) {
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
        ms.length === 0 ? { name, problem } : { name, ms: roundAll(spread(ms)) },
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
