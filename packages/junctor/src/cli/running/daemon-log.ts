import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { join } from "node:path";
import type { RunPlace } from "../../attach/index.ts";
import { stateFolder } from "../../config/index.ts";
import { isAtLeast, toReadable } from "../serve/index.ts";
import { print } from "../terminal/index.ts";

interface ShownLog {
  /** The least important lines to show; `debug` is all of them. */
  readonly level: string;
  readonly isJson: boolean;
  /** Shows the lines to come until this aborts. */
  readonly follows?: AbortSignal | undefined;
}

/** The file that the daemon of a config logs to. */
export function daemonLogOf({ hash }: Pick<RunPlace, "hash">): string {
  return join(stateFolder(), "daemon", `${hash}.log`);
}

const maxLines = 200;
/** The end of the log that is read at first, and at most at once later. */
const maxBytes = 1024 * 1024;
const lookMs = 200;

/** Prints the last lines of a daemon's log; none when it has none. */
export async function showDaemonLog(
  place: Pick<RunPlace, "hash">,
  { level, isJson, follows }: ShownLog,
): Promise<void> {
  const file = daemonLogOf(place);
  const tell = async (lines: readonly string[]): Promise<void> => {
    const shown = lines.filter((line) => isAtLeast(line, level));
    await print(shown.map((line) => (isJson ? `${line}\n` : toReadable(line))).join(""));
  };
  let last = readFrom(file);
  await tell(last?.lines.slice(-maxLines) ?? []);
  if (follows === undefined) return;
  while (!follows.aborted) {
    await untilLater(follows);
    const next = readFrom(file, last);
    await tell(next?.lines ?? []);
    last = next ?? last;
  }
}

/** Lines of a file, and where the next begins. */
interface LogPart {
  readonly lines: readonly string[];
  readonly end: number;
  readonly inode: number;
}

/** The whole lines after those that were read; the last ones without such. Undefined when there is no file. */
function readFrom(file: string, last?: LogPart): LogPart | undefined {
  let handle: number;
  try {
    handle = openSync(file, "r");
  } catch {
    return undefined;
  }
  try {
    const { size, ino: inode } = fstatSync(handle);
    // The daemon moves a log that is too large out of the way, and begins another.
    const known = last?.inode === inode && last.end <= size ? last.end : 0;
    const from = last === undefined ? Math.max(0, size - maxBytes) : known;
    const bytes = Buffer.alloc(Math.min(size - from, maxBytes));
    const read = readSync(handle, bytes, 0, bytes.length, from);
    const whole = bytes.subarray(0, read).lastIndexOf(0x0a) + 1;
    const lines = bytes.toString("utf8", 0, whole).split("\n").filter(Boolean);
    return { lines, end: from + whole, inode };
  } finally {
    closeSync(handle);
  }
}

function untilLater(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, lookMs);
    signal.addEventListener("abort", end);
  });
}
