import {
  appendFileSync,
  closeSync,
  existsSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";

interface AccessFileOptions {
  readonly file: string;
  /** The file is put aside when it is longer; 64 MiB. */
  readonly maxBytes?: number | undefined;
  /** How many files that were put aside are kept, as `file.1` and so on; 5. */
  readonly keep?: number | undefined;
  /** Called when lines cannot be written: once, until some were written again. */
  readonly onFailed: (error: unknown) => void;
}

/**
 * Appends lines to a file, which only this user may read. Lines that cannot be written are dropped: the access log is for
 * looking, and must not stop calls. The audit log is for proof.
 */
export function createAccessFile(options: AccessFileOptions): (lines: Uint8Array) => void {
  const { file, maxBytes = 64 * 1024 * 1024, keep = 5, onFailed } = options;
  let size = sizeOf(file);
  /** Whether the file may end within a line: after a crash, or on a disk that was full. */
  let isTorn = size > 0;
  let isFailing = false;
  const rotate = (): void => {
    if (keep === 0) rmSync(file, { force: true });
    for (let number = keep; number >= 1; number--) {
      const from = number === 1 ? file : `${file}.${number - 1}`;
      if (existsSync(from)) renameSync(from, `${file}.${number}`);
    }
    size = 0;
  };
  return (lines) => {
    try {
      const bytes = isTorn && !endsLine(file) ? Buffer.concat([Buffer.from("\n"), lines]) : lines;
      if (size > 0 && size + bytes.length > maxBytes) rotate();
      appendFileSync(file, bytes, { mode: 0o600 });
      size += bytes.length;
      isTorn = false;
      isFailing = false;
    } catch (error) {
      isTorn = true;
      if (!isFailing) onFailed(error);
      isFailing = true;
    }
  };
}

function sizeOf(file: string): number {
  return existsSync(file) ? statSync(file).size : 0;
}

/** Whether the last byte of a file is a line end; true for one that is empty or not there. */
function endsLine(file: string): boolean {
  const size = sizeOf(file);
  if (size === 0) return true;
  const descriptor = openSync(file, "r");
  try {
    const last = Buffer.alloc(1);
    readSync(descriptor, last, 0, 1, size - 1);
    return last[0] === 0x0a;
  } finally {
    closeSync(descriptor);
  }
}
