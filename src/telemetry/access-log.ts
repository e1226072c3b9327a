import { bounded } from "../audit/call-end.ts";
import type { CallRecord } from "./call-record.ts";

/** A line of the access log: one for each request, also for one that was refused before it was a call. */
type AccessLine = { readonly [fact: string]: string | number | undefined };

/** Where the lines go, each with its line end. Called with many lines at once; the bytes are overwritten after the call. */
type WriteLines = (lines: Uint8Array) => void;

const flushMs = 200;
const bufferBytes = 256 * 1024;
/** Most tools of which the middles of lines are kept, and most of these for each. */
const maxKept = 1000;
const maxOfTool = 8;

interface AccessLogOptions {
  readonly write: WriteLines;
  /** The wall clock, in milliseconds. */
  readonly date: () => number;
}

/** The part of a line between its time and its duration. Calls of one tool by one caller that end alike share it. */
interface LineMiddle {
  readonly method: string;
  readonly server: string;
  readonly caller: string | undefined;
  readonly era: string;
  readonly outcome: string | undefined;
  readonly text: string;
}

/**
 * Writes one JSON line for each request, several at a time: a write for each would cost more than the rest of it. Lines are put
 * together by hand, from texts that are quoted once: `JSON.stringify` of an object takes five times as long. They are ASCII, so that
 * each becomes bytes by a plain copy.
 */
export class AccessLog implements Disposable {
  readonly #options: AccessLogOptions;
  /** The middles of the last lines of each tool, and of each method without one: a few, because several callers take turns. */
  readonly #middles = new Map<string, LineMiddle[]>();
  /** How many middles were made. */
  #made = 0;
  readonly #buffer = Buffer.allocUnsafe(bufferBytes);
  /** How many bytes of the buffer wait. */
  #waiting = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** What to add to a reading of the monotonic clock; looked at anew for each batch of lines. */
  #toDate = 0;
  readonly #dates = new Dates();

  constructor(options: AccessLogOptions) {
    this.#options = options;
  }

  /** `ms` is how long the request took, up to `now`; a call of several rounds has a line for each. */
  call(call: CallRecord, ms: number, now: number): void {
    if (this.#waiting === 0) this.#toDate = this.#options.date() - now;
    const time = this.#dates.toText(now + this.#toDate);
    const trace = call.traceId === undefined ? "" : `,"trace":"${call.traceId}"`;
    this.#add(
      `{"time":"${time}${this.#middle(call)}${toMs(ms)},"bytesIn":${call.bytesIn},"bytesOut":${call.bytesOut},"call":"c${call.number}"${trace}}\n`,
    );
  }

  line(facts: AccessLine): void {
    const line = JSON.stringify({ time: new Date(this.#options.date()).toISOString(), ...facts });
    this.#add(`${toAscii(line)}\n`);
  }

  [Symbol.dispose](): void {
    this.#flush();
  }

  #add(line: string): void {
    if (line.length > bufferBytes - this.#waiting) this.#flush();
    if (line.length > bufferBytes) return this.#options.write(Buffer.from(line, "latin1"));
    this.#waiting += this.#buffer.write(line, this.#waiting, "latin1");
    this.#timer ??= setTimeout(() => this.#flush(), flushMs).unref();
  }

  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const bytes = this.#buffer.subarray(0, this.#waiting);
    this.#waiting = 0;
    if (bytes.length > 0) this.#options.write(bytes);
  }

  #middle(call: CallRecord): string {
    const { method, server = "", name = "", caller, era, outcome } = call;
    const tool = method === "tools/call" ? name : "";
    // Names that no server has were made up, and are not worth keeping. Failures are rare, and say more.
    if (server === "" || call.code !== undefined) return toMiddle(call, tool);
    const key = tool === "" ? method : tool;
    const known = this.#middles.get(key);
    if (known !== undefined)
      for (const each of known)
        if (
          each.server === server &&
          each.caller === caller &&
          each.outcome === outcome &&
          each.era === era &&
          each.method === method
        )
          return each.text;
    const middle = { method, server, caller, era, outcome, text: toMiddle(call, tool) };
    if (known !== undefined) known[known.length < maxOfTool ? known.length : this.#made % maxOfTool] = middle;
    else {
      if (this.#middles.size >= maxKept) this.#middles.clear();
      this.#middles.set(key, [middle]);
    }
    this.#made++;
    return middle.text;
  }
}

function toMiddle(
  { method, server, caller, era, outcome, code, delivery }: CallRecord,
  tool: string,
): string {
  const part = (key: string, text = ""): string =>
    text === "" ? "" : `,"${key}":${toAscii(JSON.stringify(bounded(text)))}`;
  const what = `${part("method", method)}${part("tool", tool)}${part("server", server)}${part("caller", caller)}`;
  const how = `,"era":"${era}","outcome":"${outcome}"${part("code", code)}${part("delivery", delivery)}`;
  return `Z"${what}${how},"ms":`;
}

/** JSON with every character beyond ASCII escaped. */
function toAscii(json: string): string {
  return json.replaceAll(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** Milliseconds with three digits after the point. To spell a number with fractions would take longer than the rest of a line. */
function toMs(ms: number): string {
  const micros = Math.round(ms * 1000);
  const whole = Math.floor(micros / 1000);
  return `${whole}.${threeDigits[micros - 1000 * whole]}`;
}

/** The numbers below 1,000, each with three digits. */
const threeDigits: readonly string[] = Array.from({ length: 1000 }, (_, number) =>
  String(number).padStart(3, "0"),
);

/** Dates as ISO 8601, without the `Z`. Lines of the same millisecond share one, and of the same second its first part. */
class Dates {
  #millisecond = Number.NaN;
  #text = "";
  #second = Number.NaN;
  #upToSecond = "";

  toText(date: number): string {
    const millisecond = Math.floor(date);
    if (millisecond === this.#millisecond) return this.#text;
    const second = Math.floor(millisecond / 1000);
    if (second !== this.#second) {
      this.#second = second;
      this.#upToSecond = new Date(second * 1000).toISOString().slice(0, 20);
    }
    this.#millisecond = millisecond;
    this.#text = `${this.#upToSecond}${threeDigits[millisecond - 1000 * second]}`;
    return this.#text;
  }
}
