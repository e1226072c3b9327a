import { mkdirSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { writePrivateFile } from "../config/index.ts";
import type { CallGroup } from "./history.ts";

/** What one caller did with one tool in one hour. */
export interface UsageRow {
  readonly caller: string;
  readonly server: string;
  readonly tool: string;
  calls: number;
  failed: number;
  sumMs: number;
  mostMs: number;
  bytesIn: number;
  bytesOut: number;
}

const hourMs = 3_600_000;
const keptMs = 30 * 24 * hourMs;
/** Beyond this number, the oldest files are removed. */
const maxFiles = 3000;
/** Callers and tools beyond this number share a row. */
const maxRows = 1000;
const maxFileBytes = 1024 ** 2;
export const unnamed = "unnamed";
const other = "_other";

/**
 * Counters by hour on disk. Each process has a file of its own for each hour, which is replaced as a whole, so that a crash loses
 * what was counted since it was last written and nothing else.
 */
export class UsageFiles {
  readonly #folder: string;
  readonly #process: string;
  #hour = 0;
  #files = 0;
  #rows = new Map<string, UsageRow>();
  #isChanged = false;

  constructor(folder: string, process: string) {
    this.#folder = folder;
    this.#process = process;
  }

  /** Counts calls that ended at about this date. */
  add(groups: readonly CallGroup[], date: number): void {
    const hour = Math.floor(date / hourMs);
    if (hour !== this.#hour) {
      this.write();
      this.#hour = hour;
      // A clock that was set back must not replace the file of an earlier hour.
      this.#files++;
      this.#rows = new Map();
      forgetOld(this.#folder, date);
    }
    for (const group of groups) addTo(this.#rows, toRow(group));
    this.#isChanged ||= groups.length > 0;
  }

  /** Throws when the file cannot be written; the next call tries again with all rows. */
  write(): void {
    if (!this.#isChanged) return;
    const hour = new Date(this.#hour * hourMs).toISOString().slice(0, 13);
    const rows = [...this.#rows.values()].map(toLine);
    const file = join(this.#folder, `${hour}-${this.#process}-${this.#files}.json`);
    writePrivateFile(file, `${JSON.stringify({ hour: `${hour}Z`, rows })}\n`);
    this.#isChanged = false;
  }
}

/** The counters since a date, those of hours that are not over included. Files that were damaged are left out. */
export function readUsage(folder: string, since: number): readonly UsageRow[] {
  const rows = new Map<string, UsageRow>();
  for (const name of filesIn(folder)) {
    if ((dateOf(name) ?? 0) + hourMs <= since) continue;
    for (const row of readRows(join(folder, name))) addTo(rows, row, Number.POSITIVE_INFINITY);
  }
  return [...rows.values()];
}

function addTo(rows: Map<string, UsageRow>, added: UsageRow, most: number = maxRows): void {
  const key = `${added.caller}\0${added.server}\0${added.tool}`;
  const found = rows.get(key);
  if (found === undefined && rows.size < most) rows.set(key, { ...added });
  else if (found === undefined)
    addTo(rows, { ...added, caller: other, server: other, tool: other }, Number.POSITIVE_INFINITY);
  else {
    found.calls += added.calls;
    found.failed += added.failed;
    found.sumMs += added.sumMs;
    found.mostMs = Math.max(found.mostMs, added.mostMs);
    found.bytesIn += added.bytesIn;
    found.bytesOut += added.bytesOut;
  }
}

function toRow(group: CallGroup): UsageRow {
  const { caller = unnamed, server = "", tool = "", calls, failed, sumMs, mostMs, bytesIn, bytesOut } = group;
  return { caller, server, tool, calls, failed, sumMs, mostMs, bytesIn, bytesOut };
}

type Line = readonly [string, string, string, number, number, number, number, number, number];

function toLine(row: UsageRow): Line {
  const { caller, server, tool, calls, failed, sumMs, mostMs, bytesIn, bytesOut } = row;
  return [
    caller,
    server,
    tool,
    calls,
    failed,
    Math.round(sumMs * 10) / 10,
    Math.round(mostMs * 10) / 10,
    bytesIn,
    bytesOut,
  ];
}

function readRows(file: string): readonly UsageRow[] {
  try {
    if (statSync(file).size > maxFileBytes) return [];
    const { rows } = JSON.parse(readFileSync(file, "utf8")) as { readonly rows: readonly unknown[] };
    return rows.slice(0, maxRows + 1).flatMap((line) => (isLine(line) ? [ofLine(line)] : []));
  } catch {
    return [];
  }
}

function isLine(line: unknown): line is Line {
  return (
    Array.isArray(line) &&
    line.length === 9 &&
    line.every((value, index) => (index < 3 ? typeof value === "string" : Number.isFinite(value)))
  );
}

function ofLine([caller, server, tool, calls, failed, sumMs, mostMs, bytesIn, bytesOut]: Line): UsageRow {
  return { caller, server, tool, calls, failed, sumMs, mostMs, bytesIn, bytesOut };
}

const fileForm = /^(\d{4}-\d\d-\d\dT\d\d)-[0-9a-f]+-\d+\.json$/;

/** Names of the files of hours, the oldest first. */
function filesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder)
      .filter((name) => fileForm.test(name))
      .toSorted();
  } catch {
    return [];
  }
}

function dateOf(name: string): number | undefined {
  const hour = fileForm.exec(name)?.[1];
  return hour === undefined ? undefined : Date.parse(`${hour}:00:00Z`);
}

function forgetOld(folder: string, date: number): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const names = filesIn(folder);
  const tooMany = Math.max(0, names.length - maxFiles);
  for (const [index, name] of names.entries())
    if (index < tooMany || (dateOf(name) ?? 0) < date - keptMs) rmSync(join(folder, name), { force: true });
}
