// `npm run house`: what the source is held to, with today's values beside the goals.
//
//   npm run house                    the table
//   npm run house -- --list          with the places behind each value
//   npm run house -- --list NAME     the places of one row, such as `duplicates`
//   npm run house -- --source        without what needs a run: the journeys and the processes
//   npm run house -- --all           with what must be measured on a quiet machine: CPU time and the time of `npm run check`
//   npm run house -- --json          as JSON
//   npm run house -- --write         adds the goals that are met to test/house.json
//   npm run house -- --check         exit code 1 when a goal in test/house.json is missed again

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { measureProcesses } from "./house/processes.mjs";
import { measureSource } from "./house/source-rows.mjs";
import { root } from "./setup.mjs";
import { walk } from "./walk/walk.mjs";

const heldPath = join(root, "test/house.json");
const words = process.argv.slice(2);
const has = (flag) => words.includes(`--${flag}`);
const chosen = words.filter((word) => !word.startsWith("--"));

const rows = has("source") ? [] : await measureRuns();
if (has("all")) rows.push(...(await measureCosts()));
rows.push(...measureSource());
if (has("json")) console.log(JSON.stringify(rows, undefined, 2));
else if (has("check")) check();
else print(rows.filter(({ name }) => chosen.length === 0 || chosen.includes(name)));
if (has("write")) write();

async function measureRuns() {
  const journeys = (await walk()).map(({ name, title, count, goal, files }) => {
    return { name: `walk-${name}`, title: `files passed: ${title}`, value: count, goal, places: files };
  });
  return [...journeys, await measureProcesses()];
}

async function measureCosts() {
  const { measureCheck, measureOwnTool } = await import("./house/cost.mjs");
  return [await measureOwnTool(), measureCheck()];
}

function isMet({ value, goal }) {
  return goal !== undefined && value <= goal;
}

function print(shown) {
  console.log(" today    goal");
  for (const row of shown) {
    const { name, title, value, goal, places } = row;
    const verdict = goal === undefined || isMet(row) ? "  " : "✗ ";
    const bound = goal === undefined ? "" : `≤ ${goal}`;
    console.log(`${String(value).padStart(6)} ${bound.padStart(7)}  ${verdict}${title} (${name})`);
    if (has("list")) for (const place of places) console.log(`                    ${place}`);
  }
}

function check() {
  const held = JSON.parse(readFileSync(heldPath, "utf8"));
  for (const row of rows.filter(({ name }) => held.includes(name))) {
    if (isMet(row)) continue;
    const { title, value, goal, places } = row;
    console.error(
      `${title}: ${value}, not at most ${goal}\n${places.map((place) => `  ${place}`).join("\n")}`,
    );
    process.exitCode = 1;
  }
}

function write() {
  const held = JSON.parse(readFileSync(heldPath, "utf8"));
  const met = rows.filter(isMet).map(({ name }) => name);
  const names = rows.map(({ name }) => name).filter((name) => held.includes(name) || met.includes(name));
  writeFileSync(heldPath, `${JSON.stringify([...new Set([...held, ...names])], undefined, 2)}\n`);
}
