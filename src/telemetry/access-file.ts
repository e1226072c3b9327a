import { appendFileSync, existsSync, renameSync, rmSync, statSync } from "node:fs";

interface AccessFileOptions {
  readonly file: string;
  /** The file is put aside when it is longer; 64 MiB. */
  readonly maxBytes?: number | undefined;
  /** How many files that were put aside are kept, as `file.1` and so on; 5. */
  readonly keep?: number | undefined;
  /** Told once that lines cannot be written, until some can be again. */
  readonly onFailed: (error: unknown) => void;
}

/**
 * Appends lines to a file, which only this user may read. Lines that cannot be written are dropped: the access log is for
 * looking, and must not stop calls. The audit log is for proof.
 */
export function createAccessFile(options: AccessFileOptions): (lines: string) => void {
  const { file, maxBytes = 64 * 1024 * 1024, keep = 5, onFailed } = options;
  let size = existsSync(file) ? statSync(file).size : 0;
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
      if (size > 0 && size + lines.length > maxBytes) rotate();
      appendFileSync(file, lines, { mode: 0o600 });
      size += Buffer.byteLength(lines);
      isFailing = false;
    } catch (error) {
      if (!isFailing) onFailed(error);
      isFailing = true;
    }
  };
}
