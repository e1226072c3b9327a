import { existsSync, readdirSync } from "node:fs";
import { basename, dirname, extname, join } from "node:path";
import { AuditError } from "@junctor/core/errors";
import type { AuditRecord, AuditSink } from "@junctor/core/provider";
import { ChainedLog, type LogEntry, type Retention, toEntry, toEventEntry } from "./chained-log.ts";

/** Where an audit log is written, and how many of its old files are kept. */
export interface AuditFileOptions {
  /** The file to append to. It is created if need be. */
  readonly path: string;
  /** The file is moved to `path.1` (and that to `path.2`, …) before it grows beyond this; 64 MiB. */
  readonly maxBytes?: number;
  /** Old files kept; 15. */
  readonly keep?: number;
  /** An old file that was written to within this many days is not removed to make room for the records of another caller; 1. */
  readonly keepDays?: number;
}

/** A sink that writes one JSON object a line, chained by hashes. Disposing it writes everything to disk. */
export interface AuditFile extends AsyncDisposable {
  readonly sink: AuditSink;
  /** Rejects with an `AuditError` while no record of this caller can be written. */
  ready(caller: string | undefined): Promise<void>;
}

/** An audit file that a new config may take over from the one before it. */
export interface SharedAuditFile extends AuditFile {
  readonly path: string;
  /** One more user. The file is closed when every user has disposed it. */
  retain(): SharedAuditFile;
  /** Sets how much is kept, and for how long, from now on. */
  setRetention(options: AuditFileOptions): void;
}

/** Opens a file for audit records. Only its owner may read it. Rejects with an `AuditError` when it cannot be opened. */
export async function openAuditFile(options: AuditFileOptions): Promise<AuditFile> {
  return openSharedAuditFile(options);
}

/** Like {@link openAuditFile}, for the gateway. */
export async function openSharedAuditFile(options: AuditFileOptions): Promise<SharedAuditFile> {
  const { path } = options;
  try {
    return new RecordWriter(await ChainedLog.open(path, toRetention(options)));
  } catch (error) {
    throw error instanceof AuditError ? error : new AuditError(path, error);
  }
}

const dayMs = 24 * 60 * 60_000;
const mebibyte = 1024 * 1024;

function toRetention({ maxBytes = 64 * mebibyte, keep = 15, keepDays = 1 }: AuditFileOptions): Retention {
  return { maxBytes, keep, keepMs: keepDays * dayMs };
}

/** A record that is to be written, and the promise that waits for it. */
interface Waiting extends LogEntry {
  resolve(): void;
  reject(error: unknown): void;
}

/** Writes records in order; those that come during a write are written together. */
class RecordWriter implements SharedAuditFile {
  readonly #log: ChainedLog;
  readonly #waiting: Waiting[] = [];
  #writing: Promise<void> | undefined;
  /** Why the last write failed. */
  #trouble: AuditError | undefined;
  #users = 1;

  constructor(log: ChainedLog) {
    this.#log = log;
  }

  get path(): string {
    return this.#log.path;
  }

  readonly sink = async (record: AuditRecord): Promise<void> => {
    this.#assertShare(record.caller, true);
    return this.#add(toEntry(record, record.caller));
  };

  readonly ready = async (caller: string | undefined): Promise<void> => {
    this.#assertShare(caller, false);
    if (this.#trouble !== undefined) await this.#add(toEventEntry("resumed"));
  };

  retain(): SharedAuditFile {
    this.#users++;
    return this;
  }

  setRetention(options: AuditFileOptions): void {
    this.#log.retention = toRetention(options);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#users === 0) return;
    const isLast = --this.#users === 0;
    await this.#writing;
    if (isLast) await this.#log.close();
  }

  #assertShare(caller: string | undefined, isUnderway: boolean): void {
    if (!this.#log.hasUsedUp(caller, isUnderway)) return;
    const who = caller ?? "a caller without a name";
    const why = `${who} has used up its share of the space for this time: raise "keep" or lower "keepDays"`;
    throw new AuditError(this.path, why);
  }

  #add(entry: LogEntry): Promise<void> {
    if (this.#users === 0) return Promise.reject(new AuditError(this.path, "the file is closed"));
    return new Promise((resolve, reject) => {
      this.#waiting.push({ ...entry, resolve, reject });
      this.#writing ??= this.#writeAll();
    });
  }

  async #writeAll(): Promise<void> {
    // Records that come in the same turn are written together.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, this.#log.countFitting(this.#waiting));
      try {
        await this.#log.write(batch);
        this.#trouble = undefined;
        for (const { resolve } of batch) resolve();
      } catch (error) {
        const trouble = error instanceof AuditError ? error : new AuditError(this.path, error);
        this.#trouble = trouble;
        for (const { reject } of batch) reject(trouble);
      }
    }
    this.#writing = undefined;
  }
}

/** The file of one worker, beside the one that a config names: `audit.worker-2.jsonl`. A rotated one is `audit.worker-2.jsonl.1`. */
export function toWorkerFile(file: string, number: number): string {
  const { stem, extension } = partsOf(file);
  return `${stem}.worker-${number}${extension}`;
}

/** The file itself, if it exists or is the only one, and the files of workers beside it, by number. */
export function findWorkerFiles(file: string): readonly string[] {
  const { stem, extension } = partsOf(file);
  const start = `${basename(stem)}.worker-`;
  const numbers = list(dirname(file)).flatMap((name) => {
    if (!name.startsWith(start)) return [];
    const number = name.slice(start.length).replace(/\.\d+$/, "");
    return number.endsWith(extension) ? [number.slice(0, number.length - extension.length)] : [];
  });
  const known = [...new Set(numbers.filter((number) => /^[1-9]\d*$/.test(number)).map(Number))];
  const own = known.length === 0 || existsSync(file) || existsSync(`${file}.1`) ? [file] : [];
  return [...own, ...known.toSorted((one, other) => one - other).map((number) => toWorkerFile(file, number))];
}

function partsOf(file: string): { readonly stem: string; readonly extension: string } {
  const extension = extname(file);
  return { stem: join(dirname(file), basename(file, extension)), extension };
}

function list(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
