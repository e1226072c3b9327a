import { bounded } from "../audit/call-end.ts";
import type { CallRecord } from "./live-calls.ts";

/** A line of the access log: one for each request, also for one that was refused before it was a call. */
type AccessLine = { readonly [fact: string]: string | number | undefined };

/** Where the lines go, each with its line end. Called with many lines at once. */
type WriteLines = (lines: string) => void;

const flushMs = 200;
const flushLength = 32 * 1024;

interface AccessLogOptions {
  readonly write: WriteLines;
  /** The wall clock, in milliseconds. */
  readonly date: () => number;
}

/** Writes one JSON line for each request, several at a time: a write for each would cost more than the rest of it. */
export class AccessLog implements Disposable {
  readonly #options: AccessLogOptions;
  #waiting = "";
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(options: AccessLogOptions) {
    this.#options = options;
  }

  /** `ms` is how long the request took; a call of several rounds has a line for each. */
  call(call: CallRecord, ms: number): void {
    this.line({
      method: bounded(call.method),
      tool: call.method === "tools/call" && call.name !== undefined ? bounded(call.name) : undefined,
      server: call.server,
      caller: call.caller,
      era: call.era,
      outcome: call.outcome,
      code: call.code,
      delivery: call.delivery,
      ms: Math.round(ms * 1000) / 1000,
      bytesIn: call.bytesIn,
      bytesOut: call.bytesOut,
      call: call.id,
      trace: call.traceId,
    });
  }

  line(facts: AccessLine): void {
    this.#waiting += `${JSON.stringify({ time: new Date(this.#options.date()).toISOString(), ...facts })}\n`;
    if (this.#waiting.length > flushLength) return this.#flush();
    this.#timer ??= setTimeout(() => this.#flush(), flushMs).unref();
  }

  [Symbol.dispose](): void {
    this.#flush();
  }

  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const lines = this.#waiting;
    this.#waiting = "";
    if (lines !== "") this.#options.write(lines);
  }
}
