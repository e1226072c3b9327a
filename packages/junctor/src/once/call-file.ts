import { closeSync, fsyncSync, openSync, rmSync, writeSync } from "node:fs";
import { type Clock, systemClock } from "@junctor/core/async";
import { ConfigError, RpcError } from "@junctor/core/errors";
import { createPrivateFile, readPrivateFile, writePrivateFile } from "../config/index.ts";
import { formatEnd, parseEnd } from "./call-end.ts";
import type { CallLedger, EarlierCall } from "./kept-calls.ts";

interface CallFileOptions {
  readonly path: string;
  /** How long ends are kept. */
  readonly keepMs: number;
  /** The file is written again when it is larger than twice this. */
  readonly maxBytes: number;
  readonly clock?: Clock;
  readonly onWarning: (text: string, error?: unknown) => void;
}

/** One call, as its lines in the file have it. */
interface Line {
  readonly fingerprint: string;
  readonly expiresAt: number;
  /** The end as text; undefined while it is not known. */
  readonly end: string | undefined;
}

/**
 * Keeps calls with keys in a file, so that a process that is killed does not forget them. A line is written before a call is sent, and one
 * when it has ended: a call that was begun and has no end is one whose outcome is unknown. Lines are handed to the system at once, but not
 * flushed to the disk: they outlive the process, not a power failure.
 *
 * @throws ConfigError when another process has the file, or it cannot be written
 */
export function openCallFile(options: CallFileOptions): CallLedger & Disposable {
  const { path, keepMs, maxBytes, clock = systemClock, onWarning } = options;
  const unlock = lock(path);
  const lines = readLines(path, clock, 4 * maxBytes + 16 * 1024 * 1024);
  let bytes = 0;
  let descriptor: number | undefined;

  const rewrite = (): void => {
    const now = clock.date();
    let left = maxBytes;
    for (const [id, line] of [...lines].toReversed()) {
      left -= line.end?.length ?? 0;
      if (line.expiresAt <= now) lines.delete(id);
      else if (left < 0 && line.end !== undefined)
        lines.set(id, { ...line, end: formatEnd({ kind: "dropped" }) });
    }
    const text = Array.from(lines, ([id, line]) => toText(id, line)).join("");
    if (descriptor !== undefined) closeSync(descriptor);
    descriptor = undefined;
    writePrivateFile(path, text);
    descriptor = openSync(path, "a", 0o600);
    bytes = Buffer.byteLength(text);
  };
  const append = (id: string, line: Line | undefined): void => {
    const text = toText(id, line);
    if (descriptor === undefined || bytes > 2 * maxBytes) rewrite();
    if (descriptor === undefined) throw new Error("The file is closed");
    bytes += writeAll(descriptor, text);
    if (line === undefined) lines.delete(id);
    else lines.set(id, line);
  };
  try {
    rewrite();
  } catch (error) {
    unlock();
    throw unusable(path, error);
  }
  const note = (id: string, line: Line | undefined): void => {
    try {
      append(id, line);
    } catch (error) {
      onWarning(`the end of a call cannot be written to ${path}`, error);
    }
  };
  return {
    begin: ({ id, fingerprint }): EarlierCall | undefined => {
      const now = clock.date();
      const known = lines.get(id);
      if (known !== undefined && known.expiresAt > now)
        return {
          fingerprint: known.fingerprint,
          ended: known.end === undefined ? { kind: "unknown" } : parseEnd(known.end),
        };
      try {
        append(id, { fingerprint, expiresAt: now + keepMs, end: undefined });
      } catch (error) {
        onWarning(`the beginning of a call cannot be written to ${path}`, error);
        throw notBegun(error);
      }
      return undefined;
    },
    end: (id, end) => {
      const known = lines.get(id);
      if (known !== undefined) note(id, { ...known, expiresAt: clock.date() + keepMs, end: formatEnd(end) });
    },
    release: (id) => note(id, undefined),
    [Symbol.dispose]: () => {
      if (descriptor !== undefined) {
        fsyncSync(descriptor);
        closeSync(descriptor);
      }
      descriptor = undefined;
      unlock();
    },
  };
}

function notBegun(cause: unknown): RpcError {
  const text = "The gateway cannot note that this call begins; nothing was sent";
  const data = { code: "rpc.overloaded", delivery: "not_sent", retryAfterMs: 1000 };
  return new RpcError("rpc.overloaded", text, { data, cause });
}

/**
 * The text of a line; without `line`, of one that removes the call. It begins with the line break, so that a line that a full disk cut
 * short does not spoil the next.
 */
function toText(id: string, line: Line | undefined): string {
  const facts = line === undefined ? [id] : [id, line.fingerprint, line.expiresAt, line.end ?? null];
  return `\n${JSON.stringify(facts)}`;
}

function writeAll(descriptor: number, text: string): number {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length;) at += writeSync(descriptor, bytes, at);
  return bytes.length;
}

/** What the file says. Lines that make no sense, such as one that was cut short, are left out. */
function readLines(path: string, clock: Clock, maxBytes: number): Map<string, Line> {
  const lines = new Map<string, Line>();
  const now = clock.date();
  const text = readPrivateFile(path, maxBytes) ?? "";
  for (const line of text.split("\n")) {
    const [id, fingerprint, expiresAt, end] = parseLine(line);
    if (typeof id !== "string") continue;
    if (typeof fingerprint !== "string" || typeof expiresAt !== "number" || expiresAt <= now)
      lines.delete(id);
    else lines.set(id, { fingerprint, expiresAt, end: typeof end === "string" ? end : undefined });
  }
  return lines;
}

function parseLine(line: string): readonly unknown[] {
  try {
    const facts: unknown = JSON.parse(line);
    return Array.isArray(facts) ? facts : [];
  } catch {
    return [];
  }
}

/** The locks that this process holds. */
const held = new Set<string>();

/** Locks the file: two processes with one file would each miss what the other notes. */
function lock(path: string): () => void {
  const own = `${path}.lock`;
  if (held.has(own)) throw unusable(path, "another gateway of this process keeps its calls there");
  try {
    if (!createPrivateFile(own, String(process.pid))) {
      const holder = Number(readPrivateFile(own, 32));
      if (holder !== process.pid && isAlive(holder))
        throw unusable(path, `process ${holder} keeps its calls there; give each gateway a file of its own`);
      writePrivateFile(own, String(process.pid));
    }
  } catch (error) {
    throw error instanceof ConfigError ? error : unusable(path, error);
  }
  held.add(own);
  return () => {
    held.delete(own);
    rmSync(own, { force: true });
  };
}

function isAlive(pid: number): boolean {
  if (!Number.isSafeInteger(pid) || pid <= 0) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

function unusable(path: string, error: unknown): ConfigError {
  const reason = error instanceof Error ? error.message : String(error);
  const message = `${path} cannot be used: ${reason}`;
  return new ConfigError("config", [{ path: "junctor.idempotency.file", message }], { cause: error });
}
