import { Buffer } from "node:buffer";
import type { FileHandle } from "node:fs/promises";
import { rename, rm } from "node:fs/promises";
import { systemClock } from "../async/clock.ts";
import { AuditError } from "../errors/audit-error.ts";
import type { AuditRecord, AuditSink } from "./audit.ts";
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

export interface AuditFileOptions {
  readonly path: string;
  /** The file is moved to `path.1` (and that to `path.2`, …) before it grows beyond this; 64 MiB. */
  readonly maxBytes?: number;
  /** Old files kept; 15. */
  readonly keep?: number;
  /** An old file that was written to in these days is not removed to make room for the records of another caller; 1. */
  readonly keepDays?: number;
}

/** A sink that writes one JSON object a line, chained by hashes. Dispose it to have everything on disk. */
export interface AuditFile extends AsyncDisposable {
  readonly sink: AuditSink;
  /** Rejects with an `AuditError` while no record of this caller can be written. */
  ready(caller: string | undefined): Promise<void>;
}

/** An audit file that a new config may take over from the one before it. */
export interface SharedAuditFile extends AuditFile {
  readonly path: string;
  /** One more user, with settings that apply from now on. The file is closed when every user has disposed it. */
  retain(options: AuditFileOptions): SharedAuditFile;
}

/** Opens a file for audit records. Only its owner may read it. Rejects with an `AuditError` when it cannot be opened. */
export async function openAuditFile(options: AuditFileOptions): Promise<AuditFile> {
  return openSharedAuditFile(options);
}

/** Like {@link openAuditFile}, for the gateway. */
export async function openSharedAuditFile(options: AuditFileOptions): Promise<SharedAuditFile> {
  const { path } = options;
  try {
    const [current, old] = [await openLog(path), await findOldFiles(path)];
    const chain = new Chain(await lastHashOf(path, current));
    return new Writer(toRetention(options), chain, { path, current, old });
  } catch (error) {
    throw error instanceof AuditError ? error : new AuditError(path, error);
  }
}

const dayMs = 24 * 60 * 60_000;
const mebibyte = 1024 * 1024;

function toRetention({ maxBytes = 64 * mebibyte, keep = 15, keepDays = 1 }: AuditFileOptions): Retention {
  return { maxBytes, keep, keepMs: keepDays * dayMs };
}

/** A record that is to be written, and who waits for that. */
interface Waiting {
  readonly json: string;
  readonly bytes: number;
  readonly caller: string | undefined;
  resolve(): void;
  reject(error: unknown): void;
}

/** The files of a log. */
interface LogFiles {
  readonly path: string;
  current: LogFile;
  /** The oldest first. */
  old: readonly OldFile[];
}

/** At most so many bytes has the line that a file begins with. */
const markerBytes = 512;

/** Most bytes in one write. */
const maxWriteBytes = mebibyte;

/** Writes records in their order, those that came during a write together. */
class Writer implements SharedAuditFile {
  readonly #files: LogFiles;
  #chain: Chain;
  #retention: Retention;
  readonly #waiting: Waiting[] = [];
  #writing: Promise<void> | undefined;
  /** Why the last write failed. */
  #trouble: AuditError | undefined;
  #users = 1;

  constructor(retention: Retention, chain: Chain, files: LogFiles) {
    this.#retention = retention;
    this.#chain = chain;
    this.#files = files;
  }

  get path(): string {
    return this.#files.path;
  }

  readonly sink = async (record: AuditRecord): Promise<void> => {
    this.#assertShare(record.caller, true);
    return this.#add(record, record.caller);
  };

  readonly ready = async (caller: string | undefined): Promise<void> => {
    this.#assertShare(caller, false);
    if (this.#trouble !== undefined) await this.#add(toEvent("resumed"), undefined);
  };

  #assertShare(caller: string | undefined, isUnderway: boolean): void {
    const { current, old } = this.#files;
    const all = [...old, { writtenAt: Infinity, size: current.size, usage: current.usage }];
    if (!hasUsedUp({ caller, isUnderway }, all, this.#retention, systemClock.date())) return;
    const who = caller ?? "a caller without a name";
    const why = `${who} has used up its share of the space for this time: raise "keep" or lower "keepDays"`;
    throw new AuditError(this.path, why);
  }

  retain(options: AuditFileOptions): SharedAuditFile {
    this.#users++;
    this.#retention = toRetention(options);
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#users === 0) return;
    const isLast = --this.#users === 0;
    await this.#writing;
    if (!isLast) return;
    // A chain that has no line needs no end, and one that cannot be ended has none.
    if (this.#chain.seq > 0) await this.#write([toWaiting(toEvent("closed"))]);
    await this.#files.current.handle.close();
  }

  #add(record: object, caller: string | undefined): Promise<void> {
    if (this.#users === 0) return Promise.reject(new AuditError(this.path, "the file is closed"));
    return new Promise((resolve, reject) => {
      this.#waiting.push({ ...toWaiting(record), caller, resolve, reject });
      this.#writing ??= this.#writeAll();
    });
  }

  async #writeAll(): Promise<void> {
    // Records that come in the same turn are written together.
    await Promise.resolve();
    while (this.#waiting.length > 0) await this.#write(this.#waiting.splice(0, this.#countFitting()));
    this.#writing = undefined;
  }

  /** How many records have room in the file; at least one. */
  #countFitting(): number {
    const { size, isBegun } = this.#files.current;
    let room = Math.min(maxWriteBytes, this.#retention.maxBytes - size - (isBegun ? 0 : markerBytes));
    const over = this.#waiting.findIndex(({ bytes }) => (room -= bytes) < 0);
    return over === -1 ? this.#waiting.length : Math.max(1, over);
  }

  async #write(batch: readonly Waiting[]): Promise<void> {
    const { hash } = this.#chain;
    try {
      const { current } = this.#files;
      const bytes = batch.reduce((sum, each) => sum + each.bytes, 0);
      if (current.size > 0 && current.size + bytes > this.#retention.maxBytes) await this.#rotate();
      await this.#append(batch);
      this.#trouble = undefined;
      for (const { resolve } of batch) resolve();
    } catch (error) {
      // Some of the lines may be on the disk, so a new chain begins.
      this.#chain = new Chain(hash);
      this.#files.current.isBegun = false;
      this.#trouble = error instanceof AuditError ? error : new AuditError(this.path, error);
      for (const { reject } of batch) reject(this.#trouble);
    }
  }

  async #append(batch: readonly Waiting[]): Promise<void> {
    const { current } = this.#files;
    const torn = current.isDoubtful ? await tornEndOf(current.handle) : undefined;
    const event = this.#chain.seq === 0 ? "opened" : "continued";
    const marker = current.isBegun ? [] : [toWaiting(toEvent(event, torn))];
    const lines = [...marker, ...batch].map(({ json }) => this.#chain.link(json));
    // A line that was cut short is ended, so that it spoils no other. The marker after it says what it was.
    const bytes = Buffer.from(`${torn === undefined ? "" : "\n"}${lines.join("")}`);
    current.isDoubtful = true;
    await current.handle.appendFile(bytes);
    current.isDoubtful = false;
    current.isBegun = true;
    current.size = torn === undefined ? current.size + bytes.length : (await current.handle.stat()).size;
    for (const each of batch)
      current.usage?.set(each.caller, (current.usage.get(each.caller) ?? 0) + each.bytes);
  }

  /** Begins a new file, and removes old ones as far as that is allowed. */
  async #rotate(): Promise<void> {
    const files = this.#files;
    const { path, current } = files;
    // Another process may have rotated; then there is a new file already.
    if (await isStillAt(path, current.handle)) {
      const found = await findOldFiles(path);
      const old = found.length === files.old.length ? files.old : found;
      for (const { number } of old) await rename(`${path}.${number}`, `${path}.${number + 1}`);
      await rename(path, `${path}.1`);
      const shifted = old.map((each) => ({ ...each, number: each.number + 1 }));
      const { size, usage } = current;
      files.old = [...shifted, { number: 1, writtenAt: systemClock.date(), size, usage }];
    }
    files.current = await openLog(path);
    await closeQuietly(current.handle);
    const { keep, keepMs } = this.#retention;
    for (let [oldest] = files.old; oldest !== undefined && files.old.length > keep; [oldest] = files.old) {
      if (!mayRemoveOldest(oldest, files.old, keepMs, systemClock.date())) break;
      await rm(`${path}.${oldest.number}`, { force: true });
      files.old = files.old.slice(1);
    }
  }
}

/** All that was written to it is written; what its closing fails for concerns no record. */
async function closeQuietly(handle: FileHandle): Promise<void> {
  await handle.close().catch(() => {});
}

/** A line of the log itself. `torn` is the line before it, which was cut short. */
function toEvent(event: "opened" | "continued" | "resumed" | "closed", torn?: Torn): object {
  return { time: new Date(systemClock.date()).toISOString(), event, ...(torn === undefined ? {} : { torn }) };
}

function toWaiting(record: object): Waiting {
  const json = JSON.stringify(record);
  const nothing = (): void => {};
  return {
    json,
    bytes: Buffer.byteLength(json) + linkBytes,
    caller: undefined,
    resolve: nothing,
    reject: nothing,
  };
}
