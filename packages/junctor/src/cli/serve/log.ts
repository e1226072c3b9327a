import { appendFileSync, mkdirSync, renameSync, statSync } from "node:fs";
import { dirname } from "node:path";
import type { JsonObject } from "@junctor/core/json";
import { pino } from "pino";
import type { LeveledLog } from "../../admin/index.ts";
import { toSafeLine } from "../terminal/index.ts";

/** A log on standard error: JSON lines, or text for a person at a terminal. `facts` stand in each line. */
export function createLog(level: string, facts: { readonly worker: number } | null = null): LeveledLog {
  const { stderr } = process;
  const write = (line: string): void => void stderr.write(stderr.isTTY ? toPretty(line) : line);
  return pino({ level, base: facts, timestamp: pino.stdTimeFunctions.isoTime }, { write });
}

/** A log file that is larger becomes `FILE.1`, in place of the earlier one. */
const maxLogBytes = 5 * 1024 * 1024;

/** A log in a file that only this user may read. A full disk loses lines, and stops nothing. */
export function createFileLog(level: string, file: string): LeveledLog {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  let size = statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  const write = (line: string): void => {
    try {
      if (size > maxLogBytes) {
        renameSync(file, `${file}.1`);
        size = 0;
      }
      appendFileSync(file, line, { mode: 0o600 });
      size += line.length;
    } catch {
      size = 0; // Another process may have moved it; a full disk may have room later.
    }
  };
  return pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, { write });
}

/** A line of a log as a person reads it; one that is not a line of ours stays as it is. */
export function toReadable(line: string): string {
  try {
    return toPretty(line);
  } catch {
    return `${toSafeLine(line)}\n`;
  }
}

const levels: { readonly [level: number]: string } = {
  10: "trace",
  20: "debug",
  30: "info",
  40: "warn",
  50: "error",
  60: "fatal",
};

/** Whether a line of a log is at least as important as a level; a line that is not ours always is. */
export function isAtLeast(line: string, level: string): boolean {
  const least = Number(Object.entries(levels).find(([, name]) => name === level)?.[0] ?? 0);
  const [, given] = /^\{"level":(\d+)/.exec(line) ?? [];
  return given === undefined || Number(given) >= least;
}

/** `12:00:00 warn  github is down  reason="it ended"` */
function toPretty(line: string): string {
  const { level, time, msg, ...facts } = JSON.parse(line) as JsonObject;
  const clock = String(time).slice(11, 19);
  const shown = Object.entries(facts).map(([key, value]) => `${key}=${JSON.stringify(value)}`);
  const text = [clock, (levels[Number(level)] ?? "?").padEnd(5), String(msg), ...shown].join(" ");
  return `${toSafeLine(text)}\n`;
}
