import { AccessLines, toAscii } from "./access-lines.ts";
import type { CallRecord } from "./call-record.ts";

/** A line of the access log: one for each request, also for one that was refused before it was a call. */
type AccessLine = { readonly [fact: string]: string | number | undefined };

/** Where the lines go, each with its line end. Called with many lines at once; the bytes are overwritten after the call. */
type WriteLines = (lines: Uint8Array) => void;

const flushMs = 200;
/** More than any line of a call has, since its facts are bounded; and so much that opening and closing the file cost little. */
const maxBytes = 512 * 1024;
/** How many calls are written together. */
const batch = 64;

interface AccessLogOptions {
  readonly write: WriteLines;
  /** The date at which `performance.now()` was 0, in milliseconds, by the wall clock as it is set now. */
  readonly epoch: () => number;
}

/**
 * Writes one JSON line for each request, several at a time: a write for each would cost more than the rest of it. Lines are ASCII, so
 * that every character is one byte.
 */
export class AccessLog implements Disposable {
  readonly #options: AccessLogOptions;
  readonly #lines = new AccessLines(maxBytes);
  /** Calls that ended and have no line yet. */
  readonly #ended: CallRecord[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(options: AccessLogOptions) {
    this.#options = options;
  }

  /** A call ended, which had one round. Its line is made later, with others: in a loop that costs less. */
  ended(call: CallRecord): void {
    this.#timer ??= setTimeout(() => this.#flush(), flushMs).unref();
    if (this.#ended.push(call) >= batch) this.#settle();
  }

  /** One round of a call ended at `now`, after `ms`. A call of several rounds has a line for each. */
  roundEnded(call: CallRecord, ms: number, now: number): void {
    this.#settle();
    this.#add(call, ms, now + this.#options.epoch());
  }

  line(facts: AccessLine): void {
    this.#settle();
    const time = new Date(this.#options.epoch() + performance.now()).toISOString();
    const line = Buffer.from(`${toAscii(JSON.stringify({ time, ...facts }))}\n`, "latin1");
    if (!this.#lines.addOther(line)) {
      this.#write();
      this.#options.write(line);
    }
    this.#timer ??= setTimeout(() => this.#flush(), flushMs).unref();
  }

  [Symbol.dispose](): void {
    this.#flush();
  }

  /** Makes the lines of the calls that wait for theirs. */
  #settle(): void {
    const epoch = this.#options.epoch();
    for (const call of this.#ended) {
      const { startedAt, endedAt = startedAt } = call;
      this.#add(call, endedAt - startedAt, endedAt + epoch);
    }
    this.#ended.length = 0;
  }

  #add(call: CallRecord, ms: number, date: number): void {
    if (!this.#lines.add(call, ms, date)) {
      this.#write();
      this.#lines.add(call, ms, date);
    }
    this.#timer ??= setTimeout(() => this.#flush(), flushMs).unref();
  }

  #flush(): void {
    this.#settle();
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#write();
  }

  #write(): void {
    if (this.#lines.length > 0) this.#options.write(this.#lines.take());
  }
}
