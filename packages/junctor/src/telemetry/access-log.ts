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
import type { Clock } from "@junctor/core/async";
import { bounded } from "@junctor/core/provider";
import { type CallRecord, idOf } from "./call-record.ts";

interface AccessLogOptions {
  /** Where the lines go, each with its line end. Called with many lines at once. */
  readonly write: (lines: string) => void;
  readonly clock: Pick<Clock, "date">;
}

const flushMs = 200;
/** How much is written at once: opening and closing the file for it costs little. */
const maxLength = 256 * 1024;

/**
 * Writes one JSON line for each request, also for a request that was refused before it was a call. Several lines are written together: a
 * write for each would cost more than the rest of it.
 */
export class AccessLog implements Disposable {
  readonly #options: AccessLogOptions;
  #lines = "";
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** The date of the last line, as a number and as text: under load, many lines have the same. */
  #date = Number.NaN;
  #time = "";

  constructor(options: AccessLogOptions) {
    this.#options = options;
  }

  /** A call, or one round of it, ended just now, after `ms`. */
  ended(call: CallRecord, ms: number): void {
    const { method, name, server, caller, era, outcome, code, delivery } = call;
    this.#add({
      time: this.#now(),
      method: bounded(method),
      tool: method === "tools/call" && name !== undefined ? bounded(name) : undefined,
      server: server && bounded(server),
      caller: caller && bounded(caller),
      era,
      outcome,
      code: code && bounded(code),
      delivery,
      ms: Math.round(ms * 1000) / 1000,
      bytesIn: call.bytesIn,
      bytesOut: call.bytesOut,
      call: idOf(call),
      trace: call.traceId,
    });
  }

  /** A request was refused before it was a call. */
  refused(reason: string, caller: string | undefined): void {
    this.#add({ time: this.#now(), outcome: "refused", reason, caller });
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#lines !== "") this.#options.write(this.#lines);
    this.#lines = "";
  }

  #now(): string {
    const date = Math.floor(this.#options.clock.date());
    if (date !== this.#date) this.#time = new Date(date).toISOString();
    this.#date = date;
    return this.#time;
  }

  #add(line: object): void {
    this.#lines += `${JSON.stringify(line)}\n`;
    if (this.#lines.length > maxLength) this[Symbol.dispose]();
    else this.#timer ??= setTimeout(() => this[Symbol.dispose](), flushMs).unref();
  }
}

/**
 * Appends lines to a file, which only this user may read. Lines that cannot be written are dropped: the access log is for
 * looking, and must not stop calls. The audit log is for proof.
 */
export function createAccessFile(options: {
  readonly file: string;
  /** The file is put aside when it is longer; 64 MiB. */
  readonly maxBytes?: number | undefined;
  /** How many files that were put aside are kept, as `file.1` and so on; 5. */
  readonly keep?: number | undefined;
  /** Called when lines cannot be written: once, until some were written again. */
  readonly onFailed: (error: unknown) => void;
}): (lines: string) => void {
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
      const bytes = Buffer.from(isTorn && !endsLine(file) ? `\n${lines}` : lines);
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
