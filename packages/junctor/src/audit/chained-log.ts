import { Buffer } from "node:buffer";
import { createHash, randomBytes } from "node:crypto";
import { type FileHandle, open, readdir, rename, rm, stat } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { systemClock } from "@junctor/core/async";
import { isJsonObject, type JsonObject } from "@junctor/core/json";

/** A record that is to be written. */
export interface LogEntry {
  readonly json: string;
  readonly bytes: number;
  readonly caller: string | undefined;
}

/** The most bytes of the line that a file begins with. */
const markerBytes = 512;

/** The most bytes in one write. */
const maxWriteBytes = 1024 * 1024;

/** The files of an audit log, and the chain that their lines are linked by. */
export class ChainedLog {
  readonly path: string;
  retention: Retention;
  #chain: Chain;
  #current: LogFile;
  /** The oldest first. */
  #old: readonly OldFile[];

  private constructor(path: string, retention: Retention, chain: Chain, [current, old]: LogFiles) {
    this.path = path;
    this.retention = retention;
    this.#chain = chain;
    this.#current = current;
    this.#old = old;
  }

  static async open(path: string, retention: Retention): Promise<ChainedLog> {
    const files: LogFiles = [await openLog(path), await findOldFiles(path)];
    const chain = new Chain(await lastHashOf(path, files[0]));
    return new ChainedLog(path, retention, chain, files);
  }

  /** Whether a caller has used up its share of the space; see {@link hasUsedUp}. */
  hasUsedUp(caller: string | undefined, isUnderway: boolean): boolean {
    const { size, usage } = this.#current;
    const all = [...this.#old, { writtenAt: Infinity, size, usage }];
    return hasUsedUp({ caller, isUnderway }, all, this.retention, systemClock.date());
  }

  /** How many of these entries have room in the file; at least one. */
  countFitting(entries: readonly LogEntry[]): number {
    const { size, isBegun } = this.#current;
    let room = Math.min(maxWriteBytes, this.retention.maxBytes - size - (isBegun ? 0 : markerBytes));
    const over = entries.findIndex(({ bytes }) => (room -= bytes) < 0);
    return over === -1 ? entries.length : Math.max(1, over);
  }

  /** Writes these entries, to a new file if they have no room in this one. */
  async write(entries: readonly LogEntry[]): Promise<void> {
    const { hash } = this.#chain;
    try {
      const bytes = entries.reduce((sum, each) => sum + each.bytes, 0);
      if (this.#current.size > 0 && this.#current.size + bytes > this.retention.maxBytes)
        await this.#rotate();
      await this.#append(entries);
    } catch (error) {
      // Some of the lines may be on the disk, so a new chain begins.
      this.#chain = new Chain(hash);
      this.#current.isBegun = false;
      throw error;
    }
  }

  async close(): Promise<void> {
    try {
      // A chain that has no line needs no end.
      if (this.#chain.seq > 0) await this.write([toEventEntry("closed")]);
    } catch {
      // A chain whose end cannot be written has no end.
    }
    await this.#current.handle.close();
  }

  async #append(entries: readonly LogEntry[]): Promise<void> {
    const current = this.#current;
    const torn = current.isDoubtful ? await tornEndOf(current.handle) : undefined;
    const event = this.#chain.seq === 0 ? "opened" : "continued";
    const marker = current.isBegun ? [] : [toEventEntry(event, torn)];
    const lines = [...marker, ...entries].map(({ json }) => this.#chain.link(json));
    // Ends a line that was cut short, so that it spoils no other. The marker after it describes it.
    const bytes = Buffer.from(`${torn === undefined ? "" : "\n"}${lines.join("")}`);
    current.isDoubtful = true;
    await current.handle.appendFile(bytes);
    current.isDoubtful = false;
    current.isBegun = true;
    current.size = torn === undefined ? current.size + bytes.length : (await current.handle.stat()).size;
    for (const each of entries)
      current.usage?.set(each.caller, (current.usage.get(each.caller) ?? 0) + each.bytes);
  }

  /** Begins a new file, and removes old ones as far as that is allowed. */
  async #rotate(): Promise<void> {
    const { path } = this;
    const current = this.#current;
    // Another process may have rotated; then there is a new file already.
    if (await isStillAt(path, current.handle)) {
      const found = await findOldFiles(path);
      const old = found.length === this.#old.length ? this.#old : found;
      for (const { number } of old) await rename(`${path}.${number}`, `${path}.${number + 1}`);
      await rename(path, `${path}.1`);
      const shifted = old.map((each) => ({ ...each, number: each.number + 1 }));
      const { size, usage } = current;
      this.#old = [...shifted, { number: 1, writtenAt: systemClock.date(), size, usage }];
    }
    this.#current = await openLog(path);
    await closeQuietly(current.handle);
    const { keep, keepMs } = this.retention;
    for (let [oldest] = this.#old; oldest !== undefined && this.#old.length > keep; [oldest] = this.#old) {
      if (!mayRemoveOldest(oldest, this.#old, keepMs, systemClock.date())) break;
      await rm(`${path}.${oldest.number}`, { force: true });
      this.#old = this.#old.slice(1);
    }
  }
}

type LogFiles = readonly [current: LogFile, old: readonly OldFile[]];

/** Every record is written already, so a failure to close the file concerns none of them. */
async function closeQuietly(handle: FileHandle): Promise<void> {
  await handle.close().catch(() => {});
}

export function toEntry(record: object, caller: string | undefined): LogEntry {
  const json = JSON.stringify(record);
  return { json, bytes: Buffer.byteLength(json) + linkBytes, caller };
}

/** A line of the log itself. `torn` is the line before it, which was cut short. */
export function toEventEntry(event: "opened" | "continued" | "resumed" | "closed", torn?: Torn): LogEntry {
  const time = new Date(systemClock.date()).toISOString();
  return toEntry({ time, event, ...(torn === undefined ? {} : { torn }) }, undefined);
}

/** The file that records are written to. */
interface LogFile {
  readonly handle: FileHandle;
  size: number;
  /** Undefined if there was something in it before it was opened. */
  readonly usage: Usage | undefined;
  /** Whether our chain has a line in it. */
  isBegun: boolean;
  /** Whether its last line may be incomplete. */
  isDoubtful: boolean;
}

/** A file that was rotated: `path.1` and so on. */
interface OldFile extends KeptFile {
  readonly number: number;
}

/** The part of a line that was written before the disk was full or the process was killed. */
export interface Torn {
  readonly bytes: number;
  readonly sha256: string;
}

async function openLog(path: string): Promise<LogFile> {
  const handle = await open(path, "a+", 0o600);
  const { size } = await handle.stat();
  return { handle, size, usage: size === 0 ? new Map() : undefined, isBegun: false, isDoubtful: true };
}

/** The old files beside a path, `path.1` and so on, the oldest first. One that was removed leaves a gap. */
export async function findOldFiles(path: string): Promise<readonly OldFile[]> {
  const name = `${basename(path)}.`;
  const beside = await readdir(dirname(path));
  const numbers = beside.filter((each) => each.startsWith(name)).map((each) => each.slice(name.length));
  const sorted = numbers
    .filter((text) => /^[1-9][0-9]{0,8}$/.test(text))
    .map(Number)
    .toSorted((a, b) => b - a);
  const found = await Promise.all(
    sorted.map(async (number) => {
      const old = await stat(`${path}.${number}`).catch(ifMissing);
      return old === undefined ? [] : [{ number, writtenAt: old.mtimeMs, size: old.size, usage: undefined }];
    }),
  );
  return found.flat();
}

/** Whether a path still leads to this file. */
async function isStillAt(path: string, handle: FileHandle): Promise<boolean> {
  const [atPath, ours] = [await stat(path).catch(ifMissing), await handle.stat()];
  return atPath?.ino === ours.ino && atPath.dev === ours.dev;
}

function ifMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== "ENOENT") throw error;
}

/** The hash by which a chain continues: that of the last whole line of a log, in its file or in the one before it. */
async function lastHashOf(path: string, { handle, size }: LogFile): Promise<string> {
  const line = size === 0 ? undefined : (await endOf(handle)).line;
  if (line !== undefined) return hashAfter(line);
  const old = await open(`${path}.1`, "r").catch(ifMissing);
  if (old === undefined) return noHash;
  try {
    const before = (await endOf(old)).line;
    return before === undefined ? noHash : hashAfter(before);
  } finally {
    await old.close();
  }
}

/** What follows the last end of a line; undefined when nothing does. */
async function tornEndOf(handle: FileHandle): Promise<Torn | undefined> {
  const { rest } = await endOf(handle);
  return rest.length === 0 ? undefined : { bytes: rest.length, sha256: hashOf(rest) };
}

/** The end of a file: its last whole line, and what follows that. */
async function endOf(
  handle: FileHandle,
): Promise<{ readonly line: string | undefined; readonly rest: Buffer }> {
  const { size } = await handle.stat();
  for (let length = Math.min(size, 64 * 1024); ; length = Math.min(size, 4 * length)) {
    const bytes = Buffer.alloc(length);
    const { bytesRead } = await handle.read(bytes, 0, length, size - length);
    const read = bytes.subarray(0, bytesRead);
    const end = read.lastIndexOf("\n");
    const start = end === -1 ? -1 : read.subarray(0, end).lastIndexOf("\n");
    // The beginning of the line may be further back.
    if (start === -1 && length < size) continue;
    const line = end === -1 ? undefined : read.subarray(start + 1, end).toString("utf8");
    return { line, rest: read.subarray(end + 1) };
  }
}

/** The callers that wrote to one file, with the bytes of each. Undefined stands for callers without a name. */
type Usage = Map<string | undefined, number>;

/** One file of an audit log, as far as this process knows it. */
interface KeptFile {
  /** When it was last written to, in milliseconds since the epoch. */
  readonly writtenAt: number;
  readonly size: number;
  /** Undefined for a file of an earlier process. */
  readonly usage: Usage | undefined;
}

/** How much is kept, and for how long. */
export interface Retention {
  /** Of one file. */
  readonly maxBytes: number;
  /** Old files. */
  readonly keep: number;
  /** A file that was written to within this time is not removed for another caller's records. */
  readonly keepMs: number;
}

/** Whether the oldest file may be removed: it is old enough, or all records that are kept are of one caller. */
function mayRemoveOldest(oldest: KeptFile, all: readonly KeptFile[], keepMs: number, now: number): boolean {
  return now - oldest.writtenAt >= keepMs || isOfOneCaller(all);
}

/**
 * Whether a caller has used up its share of the space. Space is shared only when it is short: the files are full, and the oldest
 * is too young to be removed. Then each caller may have an equal part of it, and all together twice the space. Calls that have begun
 * may end: `isUnderway` doubles both.
 */
function hasUsedUp(
  { caller, isUnderway }: { readonly caller: string | undefined; readonly isUnderway: boolean },
  files: readonly KeptFile[],
  { maxBytes, keep, keepMs }: Retention,
  now: number,
): boolean {
  const [oldest] = files;
  const space = maxBytes * (keep + 1);
  const used = files.reduce((sum, { size }) => sum + size, 0);
  if (oldest === undefined || used < space || mayRemoveOldest(oldest, files, keepMs, now)) return false;
  const callers = new Set(files.flatMap(({ usage }) => [...(usage?.keys() ?? [])]));
  const own = files.reduce((sum, { usage }) => sum + (usage?.get(caller) ?? 0), 0);
  const factor = isUnderway ? 2 : 1;
  return own >= (factor * space) / Math.max(1, callers.size) || used >= 2 * factor * space;
}

function isOfOneCaller(files: readonly KeptFile[]): boolean {
  const callers = new Set(files.flatMap(({ usage }) => [...(usage?.keys() ?? [])]));
  return callers.size <= 1 && files.every(({ usage }) => usage !== undefined);
}

/** The members that chain the lines of an audit file. Each process that opens a file has a chain of its own in it. */
export interface ChainLink {
  readonly chain: string;
  /** Counts the lines of one chain, from 1. */
  readonly seq: number;
  /** The hash of the line before it in the chain; of the first, that of the last line the file had. */
  readonly previous: string;
  readonly hash: string;
}

/** The most bytes that a line has beyond its record. */
const linkBytes = 256;

/** The hash that comes before the first line of all. */
export const noHash: string = "0".repeat(64);

const hashMember = /^(.*),"hash":"([0-9a-f]{64})"\}$/s;

/** Chains lines: each has a hash of its own text, and the hash of the line before it is part of that text. */
class Chain {
  readonly id: string = randomBytes(8).toString("hex");
  /** How many lines there are. */
  seq = 0;
  /** Of the last line. */
  hash: string;

  constructor(previous: string) {
    this.hash = previous;
  }

  /** The next line, made of a record's JSON text. */
  link(record: string): string {
    const own = `"chain":"${this.id}","seq":${++this.seq},"previous":"${this.hash}"`;
    const body = `${record.slice(0, -1)},${own}`;
    this.hash = hashOf(body);
    return `${body},"hash":"${this.hash}"}\n`;
  }
}

export function hashOf(text: string | Uint8Array): string {
  return createHash("sha256").update(text).digest("hex");
}

/** The hash by which a chain continues after a line. A line without a hash, of an earlier version, is hashed as a whole. */
export function hashAfter(line: string): string {
  return hashMember.exec(line)?.[2] ?? hashOf(line);
}

/** A line as it was read: a record with its link, one without a link, or no record at all. */
type ReadLine =
  | {
      readonly kind: "linked";
      readonly link: ChainLink;
      readonly record: JsonObject;
    }
  | { readonly kind: "unlinked" }
  | { readonly kind: "edited" }
  | { readonly kind: "no_record" };

/** Reads a line, and checks that its text has its hash. */
export function readLine(line: string): ReadLine {
  const record = toRecord(line);
  if (record === undefined) return { kind: "no_record" };
  const { chain, seq, previous, hash } = record;
  if (chain === undefined && previous === undefined && hash === undefined) return { kind: "unlinked" };
  const [, body = ""] = hashMember.exec(line) ?? [];
  const isWhole =
    typeof chain === "string" &&
    typeof seq === "number" &&
    typeof previous === "string" &&
    hashOf(body) === hash;
  return isWhole ? { kind: "linked", link: { chain, seq, previous, hash }, record } : { kind: "edited" };
}

function toRecord(line: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
