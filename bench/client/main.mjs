// `npm run bench:client`: calls per CPU-second of our client and of the official ones, over HTTP.
//
// Every client is a child process, and so is the one server (ours) they all call. They take turns within each round, so
// that whatever else the machine does meets all of them alike, and every answer is checked. Only the client's own CPU
// counts. Fails when, with calls in flight, ours is not three times cheaper than the official v2 client.

import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

const bound = 3;
const boundAt = 16;
const loads = [1, boundAt];
const names = ["junctor", "sdk-v2", "junctor-legacy", "sdk-v1"];
const rounds = 9;
const callsPerTurn = 1000;
const warmUpCalls = 5000;

/** @typedef {{ cpu: number, time: number }} Figure */

/** @type {Map<string, Figure[]>} by load and name, one figure a round */
const figures = new Map(loads.flatMap((load) => names.map((name) => [`${load} ${name}`, []])));

await measureAll();
console.log(
  `calls per CPU-second of the client; ${rounds} rounds of ${callsPerTurn} calls, Node ${process.version}`,
);
for (const load of loads) printTable(load);

const reached = median(ratios(boundAt, "junctor"));
console.log(`\njunctor / SDK v2, ${boundAt} in flight: ${reached.toFixed(2)}x (bound ${bound}x)`);
if (reached < bound) {
  console.error(`junctor does not make ${bound} times the calls of SDK v2`);
  process.exitCode = 1;
}

async function measureAll() {
  const server = fork(pathOf("server.mjs"));
  const [port] = /** @type {[number]} */ (await once(server, "message"));
  const subjects = [];
  for (const name of names) {
    // The official clients warn of their own listeners all the time.
    const options = { execArgv: ["--no-warnings"] };
    const child = fork(pathOf(`clients/${name}.mjs`), [`http://127.0.0.1:${port}/mcp`], options);
    await once(child, "message");
    subjects.push({ name, child });
    await measure(child, warmUpCalls, boundAt);
  }
  for (let round = 0; round < rounds; round++) {
    // Nobody always goes first.
    const turns = [...subjects.slice(round % names.length), ...subjects.slice(0, round % names.length)];
    for (const load of loads) {
      for (const { name, child } of turns)
        figuresOf(load, name).push(await measure(child, callsPerTurn, load));
    }
  }
  for (const { child } of subjects) child.kill();
  server.disconnect();
}

/**
 * @param {import("node:child_process").ChildProcess} child
 * @param {number} calls
 * @param {number} inFlight
 */
async function measure(child, calls, inFlight) {
  child.send({ calls, inFlight });
  const [figure] = /** @type {[Figure]} */ (await once(child, "message"));
  return figure;
}

/** @param {number} load */
function printTable(load) {
  console.log(
    `\n${`${load} in flight`.padEnd(15)}   median      min      max   µs CPU   µs time   this / SDK v2`,
  );
  for (const name of names) {
    const each = figuresOf(load, name);
    const perSecond = each.map(({ cpu }) => 1e6 / cpu);
    const columns = [
      name.padEnd(15),
      ...[median(perSecond), Math.min(...perSecond), Math.max(...perSecond)].map((value) =>
        value.toFixed(0).padStart(8),
      ),
      median(each.map(({ cpu }) => cpu))
        .toFixed(1)
        .padStart(8),
      median(each.map(({ time }) => time))
        .toFixed(1)
        .padStart(9),
      `${median(ratios(load, name)).toFixed(2)}x`.padStart(15),
    ];
    console.log(columns.join(" "));
  }
}

/**
 * How many more calls than SDK v2, round by round.
 *
 * @param {number} load
 * @param {string} name
 */
function ratios(load, name) {
  const other = figuresOf(load, "sdk-v2");
  return figuresOf(load, name).map(({ cpu }, round) => (other[round]?.cpu ?? NaN) / cpu);
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

/** @param {string} file */
function pathOf(file) {
  return fileURLToPath(new URL(file, import.meta.url));
}
