// `npm run bench:http`: what a small tools/call costs the server, here and on the official SDKs, over loopback HTTP.
//
// Every server is a child process, and this process is the client of all of them. They take turns within each round, so
// that whatever else the machine does meets all of them alike, and every answer is checked. `bare` is what node:http
// itself costs. Quick servers wait for the client: their calls/s are the client's, and the CPU per call is what counts.
// Fails when ours costs more than 1.4 times the bare JSON echo, or is anywhere not six times cheaper than SDK v2.

import { Subject } from "./subject.mjs";

const bareBound = 1.4;
const v2Bound = 6;
const rounds = 9;
const turnMs = 300;
const warmUpMs = 1500;

/** @typedef {import("./subject.mjs").Case} Case */
/** @typedef {{ cpu: number, time: number }} Figure */
/** @typedef {Map<string, Figure[]>} Figures by name of a server, one figure a round */

/** @type {(Case & { names: string[] })[]} */
const cases = [
  {
    name: "legacy JSON",
    era: "legacy",
    form: "json",
    names: ["junctor", "sdk-v1", "sdk-v1-stateless", "sdk-v2", "sdk-v2-session", "bare"],
  },
  { name: "modern JSON", era: "modern", form: "json", names: ["junctor", "sdk-v2", "bare"] },
  {
    name: "legacy SSE",
    era: "legacy",
    form: "sse",
    names: ["junctor", "sdk-v1", "sdk-v2", "sdk-v2-session", "bare"],
  },
  { name: "modern SSE", era: "modern", form: "sse", names: ["junctor", "sdk-v2", "bare"] },
];

console.log(
  `server CPU per tools/call, in µs; ${rounds} rounds of ${turnMs} ms, 32 connections, Node ${process.version}`,
);
console.log("legacy: 2025-11-25 in one session, modern: 2026-07-28, SSE: 20 progress frames and the result");

/** @type {Map<string, Figures>} by name of a case */
const measured = new Map();
for (const each of cases) {
  const figures = await measureCase(each);
  measured.set(each.name, figures);
  printTable(each.name, figures);
}

console.log("");
for (const { name, form } of cases) {
  const figures = measured.get(name);
  if (figures === undefined) continue;
  if (form === "json") {
    const overBare = median(ratios(figures, "junctor", "bare"));
    judge(`${name}: junctor / bare`, overBare, `at most ${bareBound}x`, overBare <= bareBound);
  }
  const underV2 = median(ratios(figures, "sdk-v2", "junctor"));
  judge(`${name}: sdk-v2 / junctor`, underV2, `at least ${v2Bound}x`, underV2 >= v2Bound);
}

/** @param {Case & { names: string[] }} measuredCase */
async function measureCase(measuredCase) {
  const subjects = measuredCase.names.map((name) => new Subject(name, measuredCase));
  /** @type {Figures} */
  const figures = new Map(measuredCase.names.map((name) => [name, []]));
  await Promise.all(subjects.map((subject) => subject.open()));
  for (const subject of subjects) await subject.measure(warmUpMs);
  for (let round = 0; round < rounds; round++) {
    // Nobody always goes first.
    const first = round % subjects.length;
    for (const subject of [...subjects.slice(first), ...subjects.slice(0, first)])
      figures.get(subject.name)?.push(await subject.measure(turnMs));
  }
  await Promise.all(subjects.map((subject) => subject.close()));
  return figures;
}

/** @param {string} title @param {Figures} figures */
function printTable(title, figures) {
  console.log(`\n${title.padEnd(16)}   median      min      max   calls/s   this / bare   SDK v2 / this`);
  for (const [name, ofName] of figures) {
    const cpu = ofName.map((figure) => figure.cpu);
    const perSecond = 1e6 / median(ofName.map((figure) => figure.time));
    const columns = [
      name.padEnd(16),
      ...[median(cpu), Math.min(...cpu), Math.max(...cpu)].map((value) => value.toFixed(1).padStart(8)),
      perSecond.toFixed(0).padStart(9),
      `${median(ratios(figures, name, "bare")).toFixed(2)}x`.padStart(13),
      `${median(ratios(figures, "sdk-v2", name)).toFixed(2)}x`.padStart(15),
    ];
    console.log(columns.join(" "));
  }
}

/** @param {string} what @param {number} reached @param {string} bound @param {boolean} isMet */
function judge(what, reached, bound, isMet) {
  console.log(`${isMet ? "PASS" : "MISS"}  ${what.padEnd(30)} ${reached.toFixed(2)}x (${bound})`);
  if (!isMet) process.exitCode = 1;
}

/**
 * How much dearer one was than another, round by round.
 *
 * @param {Figures} figures
 * @param {string} name
 * @param {string} other
 */
function ratios(figures, name, other) {
  const others = figures.get(other) ?? [];
  return (figures.get(name) ?? []).map(({ cpu }, round) => cpu / (others[round]?.cpu ?? NaN));
}

/** @param {number[]} values */
function median(values) {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = (sorted.length - 1) / 2;
  return ((sorted[Math.floor(middle)] ?? NaN) + (sorted[Math.ceil(middle)] ?? NaN)) / 2;
}
