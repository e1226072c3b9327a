import { Load } from "./load.mjs";
import { toFootprintTable, toTable, toTimesTable } from "./table.mjs";

/** @typedef {import("./contest.mjs").Contest} Contest */
/** @typedef {Record<"usual" | "stream" | "heavy", import("./contest.mjs").Plan>} Plans heavy: where a call takes milliseconds */
/** @typedef {{ isQuick: boolean, systems: ReadonlySet<string> | undefined, plans: Plans }} Settings */
/** @typedef {{ name: string, ms: number[], problem?: string }} Times */
/** @typedef {import("./footprint.mjs").Footprint} Footprint */

/** One run of the benchmark: what is wanted, the load process, and what has been found so far. */
export class Run {
  load = new Load();
  /** @type {Contest[]} */
  contests = [];
  /** @type {{ section: string, name: string, times: Times[] }[]} */
  races = [];
  /** @type {Footprint[]} */
  footprints = [];
  #settings;
  #startedAt = performance.now();

  /** @param {Settings} settings */
  constructor(settings) {
    this.#settings = settings;
  }

  get isQuick() {
    return this.#settings.isQuick;
  }

  get plans() {
    return this.#settings.plans;
  }

  /** Those of the systems the user asked for. */
  chosen = (/** @type {readonly string[]} */ names) => {
    const { systems } = this.#settings;
    return names.filter((name) => systems === undefined || systems.has(name));
  };

  /** What every contest of this run has in common. @param {keyof Plans} kind */
  contest(kind = "usual") {
    return { plan: this.plans[kind], onStep: (/** @type {string} */ step) => this.progress(step) };
  }

  /** @param {Contest} contest */
  report(contest) {
    if (contest.standings.length === 0) return;
    this.contests.push(contest);
    this.print(toTable(contest));
  }

  /** @param {string} section @param {string} name @param {Times[]} times */
  reportTimes(section, name, times) {
    if (times.length === 0) return;
    this.races.push({ section, name, times });
    this.print(toTimesTable(section, name, times));
  }

  /** @param {Footprint[]} footprints */
  reportFootprints(footprints) {
    this.footprints = footprints;
    this.print(toFootprintTable(footprints));
  }

  /** @param {string} text */
  print(text) {
    if (process.stderr.isTTY) process.stderr.write("\r\x1b[K");
    console.log(`${text}\n`);
  }

  /** One line that is overwritten, on a terminal; nothing elsewhere. @param {string} step */
  progress(step) {
    if (!process.stderr.isTTY) return;
    const seconds = ((performance.now() - this.#startedAt) / 1000).toFixed(0);
    process.stderr.write(`\r\x1b[K${`${seconds} s  ${step}`.slice(0, (process.stderr.columns ?? 80) - 1)}`);
  }

  /** Answers that were not the right ones, whoever gave them, and whatever kept Junctor from answering. */
  wrongAnswers() {
    return this.contests.flatMap(({ name: contest, standings }) =>
      standings
        .filter(
          ({ name, problem, isWrong }) => isWrong === true || (problem !== undefined && name === "junctor"),
        )
        .map(({ name: system, problem, isWrong }) => ({
          kind: isWrong === true ? "WRONG ANSWER" : "FAILED",
          text: `${system}, ${contest}: ${problem}`,
        })),
    );
  }

  get elapsedMs() {
    return performance.now() - this.#startedAt;
  }

  end() {
    this.load.end();
  }
}
