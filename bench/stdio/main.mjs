// `npm run bench:stdio`: what a small tools/call costs the server, here and on the official SDKs, over real pipes.
//
// Every server is a child process. They take turns within each round, so that whatever else the machine does meets
// all of them alike, and every answer is checked. `bare` is what Node itself costs: no server can do better by much.
// Fails when, with calls in flight, ours is not five times cheaper than SDK v1. One call at a time, most of the cost
// is waking up, reading and writing, which all servers share.

import { Subject } from "./subject.mjs";

const bound = 5;
const boundAt = 32;
const loads = [1, boundAt];
const names = ["junctor", "sdk-v1", "sdk-v2", "bare"];
const rounds = 9;
/** Enough for a turn to take some tens of milliseconds whatever the load: shorter ones measure the machine. */
const callsPerTurn = new Map([
  [1, 3000],
  [boundAt, 15_000],
]);
const warmUpCalls = 20_000;

/** @typedef {{ cpu: number, time: number }} Figure */

/** @type {Map<string, Figure[]>} by load and name, one figure a round */
const figures = new Map(loads.flatMap((load) => names.map((name) => [`${load} ${name}`, []])));

await measureAll();
console.log(
  `server CPU per tools/call, in µs; ${rounds} rounds of ${[...callsPerTurn.values()].join(" and ")} calls, Node ${process.version}`,
);
for (const load of loads) printTable(load);

const reached = median(ratios(boundAt, "junctor"));
console.log(`\nSDK v1 / junctor, ${boundAt} in flight: ${reached.toFixed(2)}x (bound ${bound}x)`);
if (reached < bound) {
  console.error(`junctor is not ${bound} times cheaper than SDK v1`);
  process.exitCode = 1;
}

async function measureAll() {
  const subjects = names.map((name) => new Subject(name));
  for (const subject of subjects) {
    await subject.handshake();
    await subject.measure(warmUpCalls, boundAt);
  }
  for (let round = 0; round < rounds; round++) {
    // Nobody always goes first.
    const turns = [...subjects.slice(round % names.length), ...subjects.slice(0, round % names.length)];
    for (const load of loads) {
      for (const subject of turns)
        figuresOf(load, subject.name).push(await subject.measure(callsPerTurn.get(load) ?? 0, load));
    }
  }
  await Promise.all(subjects.map((subject) => subject.close()));
}

/** @param {number} load */
function printTable(load) {
  console.log(`\n${load} in flight   median      min      max   calls/s   SDK v1 / this`);
  for (const name of names) {
    const cpu = figuresOf(load, name).map((figure) => figure.cpu);
    const perSecond = 1e6 / median(figuresOf(load, name).map((figure) => figure.time));
    const columns = [
      name.padEnd(11),
      ...[median(cpu), Math.min(...cpu), Math.max(...cpu)].map((value) => value.toFixed(1).padStart(8)),
      perSecond.toFixed(0).padStart(9),
      `${median(ratios(load, name)).toFixed(2)}x`.padStart(15),
    ];
    console.log(columns.join(" "));
  }
}

/**
 * How much dearer SDK v1 was, round by round.
 *
 * @param {number} load
 * @param {string} name
 */
function ratios(load, name) {
  const dearer = figuresOf(load, "sdk-v1");
  return figuresOf(load, name).map(({ cpu }, round) => (dearer[round]?.cpu ?? NaN) / cpu);
}

/** @param {number} load @param {string} name */
function figuresOf(load, name) {
  return figures.get(`${load} ${name}`) ?? [];
}

/** @param {number[]} values */
function median(values) {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = (sorted.length - 1) / 2;
  return ((sorted[Math.floor(middle)] ?? NaN) + (sorted[Math.ceil(middle)] ?? NaN)) / 2;
}
