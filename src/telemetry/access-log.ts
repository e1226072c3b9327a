import { bounded } from "../audit/call-end.ts";
import type { CallRecord } from "./call-record.ts";

/** A line of the access log: one for each request, also for one that was refused before it was a call. */
type AccessLine = { readonly [fact: string]: string | number | undefined };

/** Where the lines go, each with its line end. Called with many lines at once. */
type WriteLines = (lines: string) => void;

const flushMs = 200;
const flushLength = 64 * 1024;
/** Texts that are kept in JSON form. */
const maxKept = 1000;

interface AccessLogOptions {
  readonly write: WriteLines;
  /** The wall clock, in milliseconds. */
  readonly date: () => number;
}

/** The part of a line that is the same for all calls of a thing. */
interface LineHead {
  readonly method: string;
  readonly server: string;
  readonly text: string;
}

/**
 * Writes one JSON line for each request, several at a time: a write for each would cost more than the rest of it. Lines are put
 * together by hand, from texts that are quoted once: `JSON.stringify` of an object takes five times as long.
 */
export class AccessLog implements Disposable {
  readonly #options: AccessLogOptions;
  readonly #heads = new Map<string, LineHead>();
  readonly #quoted = new Map<string, string>();
  #waiting = "";
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** What to add to a reading of the monotonic clock; looked at anew for each batch of lines. */
  #toDate = 0;
  readonly #seconds = new Seconds();

  constructor(options: AccessLogOptions) {
    this.#options = options;
  }

  /** `ms` is how long the request took, up to `now`; a call of several rounds has a line for each. */
  call(call: CallRecord, ms: number, now: number): void {
    if (this.#waiting === "") this.#toDate = this.#options.date() - now;
    const { caller, code, delivery, traceId } = call;
    const time = this.#seconds.toText(now + this.#toDate);
    const whose = caller === undefined ? "" : `,"caller":${this.#quote(caller)}`;
    const why = code === undefined ? "" : `,"code":${this.#quote(code)}`;
    const how = delivery === undefined ? "" : `,"delivery":${this.#quote(delivery)}`;
    const trace = traceId === undefined ? "" : `,"trace":"${traceId}"`;
    this.#add(
      `{"time":"${time}Z",${this.#head(call)}${whose},"era":"${call.era}","outcome":"${call.outcome}"${why}${how},"ms":${toMs(ms)},"bytesIn":${call.bytesIn},"bytesOut":${call.bytesOut},"call":"c${call.number}"${trace}}\n`,
    );
  }

  line(facts: AccessLine): void {
    this.#add(`${JSON.stringify({ time: new Date(this.#options.date()).toISOString(), ...facts })}\n`);
  }

  [Symbol.dispose](): void {
    this.#flush();
  }

  #add(line: string): void {
    this.#waiting += line;
    if (this.#waiting.length > flushLength) this.#flush();
    else this.#timer ??= setTimeout(() => this.#flush(), flushMs).unref();
  }

  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const lines = this.#waiting;
    this.#waiting = "";
    if (lines !== "") this.#options.write(lines);
  }

  #head({ method, name = "", server = "" }: CallRecord): string {
    const tool = method === "tools/call" ? name : "";
    // Names that no server has were made up, and are not worth keeping.
    if (server === "") return toHead(method, tool, server);
    const key = tool === "" ? method : tool;
    const known = this.#heads.get(key);
    if (known !== undefined && known.server === server && known.method === method) return known.text;
    const text = toHead(method, tool, server);
    keep(this.#heads, key, { method, server, text });
    return text;
  }

  #quote(text: string): string {
    const known = this.#quoted.get(text);
    if (known !== undefined) return known;
    const quoted = JSON.stringify(text);
    keep(this.#quoted, text, quoted);
    return quoted;
  }
}

function toHead(method: string, tool: string, server: string): string {
  const part = (key: string, text: string): string =>
    text === "" ? "" : `,"${key}":${JSON.stringify(bounded(text))}`;
  return `"method":${JSON.stringify(bounded(method))}${part("tool", tool)}${part("server", server)}`;
}

function keep<T>(kept: Map<string, T>, key: string, value: T): void {
  if (kept.size >= maxKept) kept.clear();
  kept.set(key, value);
}

/** Milliseconds with three digits after the point. */
function toMs(ms: number): string {
  const micros = Math.round(ms * 1000);
  return `${Math.floor(micros / 1000)}.${threeDigits(micros % 1000)}`;
}

/** A number below 1,000. To spell a number with fractions would take longer than the rest of a line. */
function threeDigits(number: number): string {
  return String(1000 + number).slice(1);
}

/** Dates as ISO 8601, without the `Z`. The part up to the second is made once a second. */
class Seconds {
  #second = Number.NaN;
  #text = "";

  toText(date: number): string {
    const second = Math.floor(date / 1000);
    if (second !== this.#second) {
      this.#second = second;
      this.#text = new Date(second * 1000).toISOString().slice(0, 20);
    }
    return this.#text + threeDigits(Math.floor(date) % 1000);
  }
}
