// Which processes belong to a run. Linux only.

import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/** @typedef {import("./world.mjs").World} World */
/** @typedef {{ pid: number, command: string }} Process */

const pauseMs = 200;

/** The unit of times in /proc, on every Linux that Node.js runs on. */
const tickMs = 10;

/**
 * The live processes of a run, this one excepted. Servers get a short list of variables and so do not have the mark of the
 * run, but they have its home folder; one that drops that too still has its current folder or its program there.
 *
 * @param {World} world
 * @returns {Process[]}
 */
export function processesOf(world) {
  return pids().flatMap((pid) => {
    const command = read(`/proc/${pid}/cmdline`);
    const isOurs =
      hasOurVariables(pid, world) ||
      isWithin(currentFolder(pid), world.desk) ||
      command.includes(`${world.home}/.npm/_npx`);
    return isOurs ? [{ pid, command: command.replaceAll("\0", " ").trim().slice(0, 200) }] : [];
  });
}

/**
 * Waits until no process of the run is left, and returns those that are.
 *
 * @param {World} world
 * @param {number} limitMs
 */
export async function untilNone(world, limitMs) {
  const deadline = performance.now() + limitMs;
  for (;;) {
    const left = processesOf(world);
    if (left.length === 0 || performance.now() > deadline) return left;
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}

/** Ends the processes that have the variables of the run, so that its next part starts clean. @param {World} world */
export function endAll(world) {
  for (const pid of pids()) {
    if (!hasOurVariables(pid, world)) continue;
    try {
      process.kill(pid, "SIGKILL");
    } catch (error) {
      if (/** @type {NodeJS.ErrnoException} */ (error).code !== "ESRCH") throw error;
    }
  }
}

/** All but this process and those that ended but were not waited for. */
function pids() {
  return readdirSync("/proc")
    .map(Number)
    .filter((pid) => Number.isInteger(pid) && pid !== process.pid && !isZombie(pid));
}

/** How much processor time a process has used. @param {number | undefined} pid */
export function processorMsOf(pid) {
  const stat = read(`/proc/${pid}/stat`);
  const [user, system] = stat
    .slice(stat.lastIndexOf(")") + 2)
    .split(" ")
    .slice(11, 13)
    .map(Number);
  return ((user ?? 0) + (system ?? 0)) * tickMs;
}

/** @param {number} pid @param {World} world */
function hasOurVariables(pid, { id, home }) {
  const variables = read(`/proc/${pid}/environ`).split("\0");
  return variables.includes(`HOME=${home}`) || variables.includes(`JUNCTOR_FIELD_RUN=${id}`);
}

/** @param {string} path @param {string} folder */
function isWithin(path, folder) {
  return path === folder || path.startsWith(`${folder}/`);
}

/** @param {number} pid */
function isZombie(pid) {
  const stat = read(`/proc/${pid}/stat`);
  return stat.slice(stat.lastIndexOf(")") + 2).startsWith("Z");
}

/** @param {number} pid */
function currentFolder(pid) {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    return "";
  }
}

/** Empty for a process that is gone, or another user's. @param {string} path */
function read(path) {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return "";
  }
}
