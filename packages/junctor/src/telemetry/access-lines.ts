import { bounded } from "@junctor/core/provider";
import type { CallRecord } from "./call-record.ts";

/** Most tools whose middles of lines are kept. */
const maxKept = 1000;
/** Most middles that are kept of one tool. */
const maxOfTool = 8;
/** Most bytes of a line besides its middle: names of facts, a date, four numbers and the id of a trace. */
const maxBesides = 256;

/** The part of a line between its time and its duration. Calls of one tool by one caller that end alike share it. */
interface LineMiddle {
  readonly method: string;
  readonly server: string;
  readonly caller: string | undefined;
  readonly era: string;
  readonly outcome: string | undefined;
  readonly bytes: Uint8Array;
}

/**
 * Makes the lines of the access log, as bytes, one after the other in one buffer. They are put together by hand, from parts that were
 * made before: a line as text makes so much garbage that collecting it takes as long as making it, and `JSON.stringify` of an
 * object takes five times as long as both.
 */
export class AccessLines {
  readonly #bytes: Uint8Array;
  #length = 0;
  /** The middles of the last lines of each tool, and of each method without one: a few, because several callers take turns. */
  readonly #middles = new Map<string, LineMiddle[]>();
  /** How many middles were made. */
  #made = 0;
  readonly #date = new DateBytes();

  constructor(maxBytes: number) {
    this.#bytes = new Uint8Array(maxBytes);
  }

  get length(): number {
    return this.#length;
  }

  /** The lines since the last time. The bytes are overwritten by the next line. */
  take(): Uint8Array {
    const bytes = this.#bytes.subarray(0, this.#length);
    this.#length = 0;
    return bytes;
  }

  /** Adds the line of a call that took so long, up to this date; false when it has no room before the lines are taken. */
  add(call: CallRecord, ms: number, date: number): boolean {
    const middle = this.#middle(call);
    const bytes = this.#bytes;
    let at = this.#length;
    if (at + middle.length + maxBesides > bytes.length) return false;
    at = put(bytes, at, parts.time);
    at = put(bytes, at, this.#date.of(date));
    bytes.set(middle, at);
    const micros = Math.round(ms * 1000);
    const wholeMs = Math.floor(micros / 1000);
    at = putNumber(bytes, at + middle.length, wholeMs);
    at = put(bytes, at, fractions[micros - 1000 * wholeMs] ?? parts.noFraction);
    at = put(bytes, at, parts.bytesIn);
    at = putNumber(bytes, at, call.bytesIn);
    at = put(bytes, at, parts.bytesOut);
    at = putNumber(bytes, at, call.bytesOut);
    at = put(bytes, at, parts.call);
    at = putNumber(bytes, at, call.number);
    at = put(bytes, at, parts.quote);
    if (call.traceId !== undefined) at = put(bytes, at, toBytes(`,"trace":"${call.traceId}"`));
    this.#length = put(bytes, at, parts.end);
    return true;
  }

  /** Adds a line of another kind; false when it has no room before the lines are taken. */
  addOther(line: Uint8Array): boolean {
    if (line.length > this.#bytes.length - this.#length) return false;
    this.#bytes.set(line, this.#length);
    this.#length += line.length;
    return true;
  }

  #middle(call: CallRecord): Uint8Array {
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
          return each.bytes;
    const middle = { method, server, caller, era, outcome, bytes: toMiddle(call, tool) };
    if (known !== undefined) known[known.length < maxOfTool ? known.length : this.#made % maxOfTool] = middle;
    else {
      if (this.#middles.size >= maxKept) this.#middles.clear();
      this.#middles.set(key, [middle]);
    }
    this.#made++;
    return middle.bytes;
  }
}

/** Copies a few bytes, for which a loop is quicker than `set`. Returns the place after them, as {@link putNumber} does. */
function put(into: Uint8Array, at: number, bytes: Uint8Array): number {
  const { length } = bytes;
  for (let index = 0; index < length; index++) into[at + index] = bytes[index] as number;
  return at + length;
}

/** Writes the digits of a whole number that is not negative. */
function putNumber(into: Uint8Array, at: number, number: number): number {
  if (number > maxInteger) return put(into, at, toBytes(String(number)));
  let rest = number | 0;
  let end = at + 1;
  for (let more = rest; more >= 10; more = (more / 10) | 0) end++;
  for (let place = end - 1; place >= at; place--) {
    const tenth = (rest / 10) | 0;
    into[place] = zero + rest - 10 * tenth;
    rest = tenth;
  }
  return end;
}

/** V8 divides numbers up to this one as integers, which is much quicker. */
const maxInteger = 2 ** 31 - 1;
const zero = 0x30;

/** The bytes of a text in which every character is one byte. */
function toBytes(ascii: string): Uint8Array {
  return Uint8Array.from(Buffer.from(ascii, "latin1"));
}

const parts = {
  time: toBytes('{"time":"'),
  bytesIn: toBytes(',"bytesIn":'),
  bytesOut: toBytes(',"bytesOut":'),
  call: toBytes(',"call":"c'),
  quote: toBytes('"'),
  noFraction: toBytes(".000"),
  end: toBytes("}\n"),
};

/** A point and three digits, for each thousandth. */
const fractions: readonly Uint8Array[] = Array.from({ length: 1000 }, (_, number) =>
  toBytes(`.${String(number).padStart(3, "0")}`),
);

function toMiddle(
  { method, server, caller, era, outcome, code, delivery }: CallRecord,
  tool: string,
): Uint8Array {
  const part = (key: string, text = ""): string =>
    text === "" ? "" : `,"${key}":${toAscii(JSON.stringify(bounded(text)))}`;
  const what = `${part("method", method)}${part("tool", tool)}${part("server", server)}${part("caller", caller)}`;
  const how = `,"era":"${era}","outcome":"${outcome}"${part("code", code)}${part("delivery", delivery)}`;
  return toBytes(`Z"${what}${how},"ms":`);
}

/** JSON with every character beyond ASCII escaped. */
export function toAscii(json: string): string {
  return json.replaceAll(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** Dates as ISO 8601, without the `Z`. Lines of the same millisecond share one, and of the same second its first part. */
class DateBytes {
  #millisecond = Number.NaN;
  #second = Number.NaN;
  #bytes: Uint8Array = new Uint8Array();

  of(date: number): Uint8Array {
    const millisecond = Math.floor(date);
    if (millisecond === this.#millisecond) return this.#bytes;
    const second = Math.floor(millisecond / 1000);
    if (second !== this.#second) {
      this.#second = second;
      this.#bytes = toBytes(new Date(second * 1000).toISOString().slice(0, -1));
    }
    this.#millisecond = millisecond;
    this.#bytes.set(fractions[millisecond - 1000 * second] ?? [], this.#bytes.length - 4);
    return this.#bytes;
  }
}
