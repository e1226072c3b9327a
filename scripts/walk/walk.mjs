import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { root } from "../setup.mjs";
import { buildProbed } from "./build.mjs";
import { journeys } from "./journeys.mjs";

const warmUps = 3;
const rounds = 5;

/** Makes the calls. Each gives its `files` in order of first entry, and their `count` without json and async. */
export async function walk() {
  // Inside the checkout, so that the dependencies are found.
  const folder = mkdtempSync(join(root, "node_modules/.junctor-walk-"));
  try {
    const junctor = await import(pathToFileURL(await buildProbed(folder)).href);
    const walked = [];
    for (const journey of journeys) walked.push(await follow(journey, junctor));
    return walked;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** `json` and `async` are below everything: a call may use as much of them as it likes. */
export function isCounted(file) {
  return !/^(json|async)\//.test(file);
}

async function follow({ name, title, goal, prepare }, junctor) {
  const { call, close } = await prepare(junctor);
  try {
    for (let round = 0; round < warmUps; round++) await record(call);
    const runs = [];
    for (let round = 0; round < rounds; round++) runs.push(await record(call));
    const files = commonFiles(runs);
    return { name, title, goal, all: files.length, count: files.filter(isCounted).length, files };
  } finally {
    await close();
  }
}

/** The files that one call enters, in order of first entry, until it is over and nothing more runs. */
async function record(call) {
  const files = new Set();
  let entries = 0;
  globalThis.junctorWalk = (file) => {
    entries++;
    files.add(file);
  };
  await call();
  for (let seen = -1; seen !== entries;) {
    seen = entries;
    await sleep(20);
  }
  globalThis.junctorWalk = undefined;
  return [...files];
}

/** Files whose functions a clock runs, five times a second, whether there is a call or not. */
const byClock = new Set(["transports/http/server/memory-watch.ts"]);

/** The files of most runs, so that a timer that fires during one of them adds nothing. */
function commonFiles(runs) {
  const all = [...new Set(runs.flat())].filter((file) => !byClock.has(file));
  return all.filter((file) => runs.filter((run) => run.includes(file)).length > runs.length / 2);
}
