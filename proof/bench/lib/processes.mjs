// What the kernel says of processes: their children, their CPU time and their memory. Linux only.

import { existsSync, readdirSync, readFileSync } from "node:fs";

/** What of a tree counts. `exceptCommand` leaves out descendants whose command line contains it, with their descendants. */
/** @typedef {{ pid: number, exceptCommand?: string | undefined }} Tree */

const microsPerTick = 10_000;
/** The kernel counts nanoseconds by thread where it keeps scheduler statistics, and hundredths of seconds anywhere. */
const hasNanos = existsSync(`/proc/${process.pid}/task/${process.pid}/schedstat`);

export function requireProc() {
  try {
    readFileSync("/proc/self/stat");
  } catch {
    throw new Error("the benchmark reads CPU time and memory from /proc, which this system does not have");
  }
}

/**
 * User and system time of a live process tree, in microseconds, with that of children it has waited for.
 *
 * With `exceptCommand`, children that are gone do not count: nobody can tell any more whether they were excepted.
 *
 * @param {Tree} tree
 */
export function cpuMicros(tree) {
  let total = 0;
  for (const pid of pidsOf(tree)) {
    total += ownMicros(pid);
    if (tree.exceptCommand === undefined) total += reapedMicros(pid);
  }
  return total;
}

/**
 * The most resident memory each process of the tree ever had, added up, in bytes.
 *
 * @param {Tree} tree
 */
export function peakBytes(tree) {
  return sumOfStatus(tree, "VmHWM");
}

/**
 * The resident memory of the tree now, in bytes.
 *
 * @param {Tree} tree
 */
export function residentBytes(tree) {
  return sumOfStatus(tree, "VmRSS");
}

/** @param {Tree} tree @param {string} field */
function sumOfStatus(tree, field) {
  const pattern = new RegExp(`^${field}:\\s+(\\d+) kB`, "m");
  let total = 0;
  for (const pid of pidsOf(tree)) {
    total += Number(pattern.exec(readOr(`/proc/${pid}/status`, ""))?.[1] ?? 0) * 1024;
  }
  return total;
}

/**
 * The root and its live descendants that count.
 *
 * @param {Tree} tree
 * @returns {number[]}
 */
export function pidsOf({ pid, exceptCommand }) {
  const found = [pid];
  for (const parent of found) {
    for (const child of childrenOf(parent)) {
      if (exceptCommand === undefined || !readOr(`/proc/${child}/cmdline`, "").includes(exceptCommand))
        found.push(child);
    }
  }
  return found;
}

/** @param {number} pid */
function childrenOf(pid) {
  return tasksOf(pid).flatMap((task) =>
    readOr(`/proc/${pid}/task/${task}/children`, "").split(" ").filter(Boolean).map(Number),
  );
}

/** @param {number} pid */
function ownMicros(pid) {
  if (!hasNanos) return ticksOf(pid, 11) * microsPerTick;
  let nanos = 0;
  for (const task of tasksOf(pid))
    nanos += Number(readOr(`/proc/${pid}/task/${task}/schedstat`, "0").split(" ", 1)[0]);
  return nanos / 1000;
}

/** @param {number} pid */
function reapedMicros(pid) {
  return ticksOf(pid, 13) * microsPerTick;
}

/**
 * User and system time of /proc/PID/stat, whose second field may hold spaces and brackets.
 *
 * @param {number} pid
 * @param {11 | 13} index 11: its own, 13: its children's
 */
function ticksOf(pid, index) {
  const text = readOr(`/proc/${pid}/stat`, "");
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return Number(fields[index] ?? 0) + Number(fields[index + 1] ?? 0);
}

/** @param {number} pid */
function tasksOf(pid) {
  try {
    return readdirSync(`/proc/${pid}/task`);
  } catch {
    return [];
  }
}

/** A process may be gone between being listed and being read. */
/** @param {string} path @param {string} otherwise */
function readOr(path, otherwise) {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return otherwise;
  }
}
