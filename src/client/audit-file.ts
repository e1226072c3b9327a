import { once } from "node:events";
import { createWriteStream, type WriteStream } from "node:fs";
import { rename, stat } from "node:fs/promises";
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

/** Opens a file for audit records. Only its owner may read it. */
export async function openAuditFile({
  path,
  maxBytes = 64 * 1024 * 1024,
  keep = 5,
}: AuditFileOptions): Promise<AuditFile> {
  let size = await sizeOf(path);
  let stream = openStream(path);
  let tail: Promise<void> = Promise.resolve();

  const rotate = async (): Promise<void> => {
    await endStream(stream);
    for (let number = keep - 1; number >= 1; number--)
      await renameIfThere(`${path}.${number}`, `${path}.${number + 1}`);
    if (keep > 0) await renameIfThere(path, `${path}.1`);
    stream = openStream(path);
    size = await sizeOf(path);
  };
  const write = async (record: AuditRecord): Promise<void> => {
    const line = `${JSON.stringify(record)}\n`;
    const length = Buffer.byteLength(line);
    if (size > 0 && size + length > maxBytes) await rotate();
    size += length;
    if (!stream.write(line)) await once(stream, "drain");
  };
  return {
    // One after the other: lines never mix, and no record is lost to a rotation.
    sink: (record) => {
      tail = tail.then(
        () => write(record),
        () => write(record),
      );
      return tail;
    },
    [Symbol.asyncDispose]: async () => {
      await tail.catch(() => {});
      await endStream(stream);
    },
  };
}

function openStream(path: string): WriteStream {
  return createWriteStream(path, { flags: "a", mode: 0o600 });
}

function endStream(stream: WriteStream): Promise<void> {
  return new Promise((resolve, reject) => {
    stream.once("error", reject);
    stream.end(resolve);
  });
}

async function sizeOf(path: string): Promise<number> {
  try {
    return (await stat(path)).size;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return 0;
    throw error;
  }
}

async function renameIfThere(from: string, to: string): Promise<void> {
  try {
    await rename(from, to);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
}
