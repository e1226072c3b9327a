import { Buffer } from "node:buffer";
import { type FileHandle, rename, rm } from "node:fs/promises";
import { systemClock } from "@junctor/core/async";
import { Chain, linkBytes } from "./chain.ts";
import {
  findOldFiles,
  isStillAt,
  type LogFile,
  lastHashOf,
  type OldFile,
  openLog,
  type Torn,
  tornEndOf,
} from "./log-file.ts";
import { hasUsedUp, mayRemoveOldest, type Retention } from "./shares.ts";

/** A record that is to be written. */
export interface LogEntry {
  readonly json: string;
  readonly bytes: number;
  readonly caller: string | undefined;
}

/** A line of the log itself. */
type Marker = "opened" | "continued" | "resumed" | "closed";

/** At most so many bytes has the line that a file begins with. */
const markerBytes = 512;

/** Most bytes in one write. */
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
      // One that cannot be ended has none.
    }
    await this.#current.handle.close();
  }

  async #append(entries: readonly LogEntry[]): Promise<void> {
    const current = this.#current;
    const torn = current.isDoubtful ? await tornEndOf(current.handle) : undefined;
    const event = this.#chain.seq === 0 ? "opened" : "continued";
    const marker = current.isBegun ? [] : [toEventEntry(event, torn)];
    const lines = [...marker, ...entries].map(({ json }) => this.#chain.link(json));
    // A line that was cut short is ended, so that it spoils no other. The marker after it says what it was.
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

/** All that was written to it is written; a failure to close it concerns no record. */
async function closeQuietly(handle: FileHandle): Promise<void> {
  await handle.close().catch(() => {});
}

export function toEntry(record: object, caller: string | undefined): LogEntry {
  const json = JSON.stringify(record);
  return { json, bytes: Buffer.byteLength(json) + linkBytes, caller };
}

/** A line of the log itself. `torn` is the line before it, which was cut short. */
export function toEventEntry(event: Marker, torn?: Torn): LogEntry {
  const time = new Date(systemClock.date()).toISOString();
  return toEntry({ time, event, ...(torn === undefined ? {} : { torn }) }, undefined);
}
