import { Buffer } from "node:buffer";
import { type FileHandle, open, rename, rm } from "node:fs/promises";
import { AuditError } from "../errors/audit-error.ts";
import type { AuditRecord, AuditSink } from "./audit.ts";

export interface AuditFileOptions {
  readonly path: string;
  /** The file is moved to `path.1` (and that to `path.2`, …) before it grows beyond this; 64 MiB. */
  readonly maxBytes?: number;
  /** Old files kept; 5. */
  readonly keep?: number;
}

/** A sink that writes one JSON object a line. Dispose it to have everything on disk. */
export interface AuditFile extends AsyncDisposable {
  readonly sink: AuditSink;
}

/** Opens a file for audit records. Only its owner may read it. Rejects with an `AuditError` when it cannot be written. */
export async function openAuditFile(options: AuditFileOptions): Promise<AuditFile> {
  const { path, maxBytes = 64 * 1024 * 1024, keep = 5 } = options;
  let current = await openLog(path);
  let tail: Promise<void> = Promise.resolve();
  let isClosed = false;

  const rotate = async (): Promise<void> => {
    await current.handle.close();
    for (let number = keep - 1; number >= 1; number--)
      await renameIfThere(`${path}.${number}`, `${path}.${number + 1}`);
    await (keep > 0 ? renameIfThere(path, `${path}.1`) : rm(path, { force: true }));
    current = await openLog(path);
  };
  const write = async (record: AuditRecord): Promise<void> => {
    if (isClosed) throw new AuditError(path, "the file is closed");
    // A line that was cut short by a full disk is ended, so that it spoils no other.
    const line = Buffer.from(`${current.isTorn ? "\n" : ""}${JSON.stringify(record)}\n`);
    if (current.size > 0 && current.size + line.length > maxBytes) await rotate();
    current.isTorn = true;
    try {
      await current.handle.appendFile(line);
    } catch (error) {
      throw new AuditError(path, error);
    }
    current.isTorn = false;
    current.size += line.length;
  };
  return {
    // One after the other: lines never mix, and no record is lost to a rotation.
    sink: (record) => {
      const written = tail.then(() => write(record));
      tail = written.catch(() => {}); // The caller of the sink is told.
      return written;
    },
    [Symbol.asyncDispose]: async () => {
      await tail;
      if (isClosed) return;
      isClosed = true;
      await current.handle.close();
    },
  };
}

interface LogFile {
  readonly handle: FileHandle;
  size: number;
  /** The last line may be incomplete. */
  isTorn: boolean;
}

async function openLog(path: string): Promise<LogFile> {
  try {
    const handle = await open(path, "a", 0o600);
    return { handle, size: (await handle.stat()).size, isTorn: false };
  } catch (error) {
    throw new AuditError(path, error);
  }
}

async function renameIfThere(from: string, to: string): Promise<void> {
  try {
    await rename(from, to);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
}
