import { Buffer } from "node:buffer";
import { type FileHandle, open, readdir, stat } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { hashAfter, hashOf, noHash } from "./chain.ts";
import type { KeptFile, Usage } from "./shares.ts";

/** The file that records are written to. */
export interface LogFile {
  readonly handle: FileHandle;
  size: number;
  /** Undefined if there was something in it before it was opened. */
  readonly usage: Usage | undefined;
  /** Whether our chain has a line in it. */
  isBegun: boolean;
  /** Its last line may be incomplete. */
  isDoubtful: boolean;
}

/** A file that was rotated: `path.1` and so on. */
export interface OldFile extends KeptFile {
  readonly number: number;
}

/** The part of a line that was written before the disk was full or the process was killed. */
export interface Torn {
  readonly bytes: number;
  readonly sha256: string;
}

export async function openLog(path: string): Promise<LogFile> {
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
export async function isStillAt(path: string, handle: FileHandle): Promise<boolean> {
  const [there, ours] = [await stat(path).catch(ifMissing), await handle.stat()];
  return there?.ino === ours.ino && there.dev === ours.dev;
}

function ifMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== "ENOENT") throw error;
}

/** The hash by which a chain continues: that of the last whole line of a log, in its file or in the one before it. */
export async function lastHashOf(path: string, { handle, size }: LogFile): Promise<string> {
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
export async function tornEndOf(handle: FileHandle): Promise<Torn | undefined> {
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
