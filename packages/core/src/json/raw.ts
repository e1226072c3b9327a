import { Buffer } from "node:buffer";
import { forEachMember, isKey } from "./checked.ts";
import { toText } from "./keys.ts";
import { Pieced } from "./pieced.ts";
import { type Index, type ScanLimits, scan } from "./scan.ts";
import { defineShape, type Shape, type ShapeLevel } from "./shape.ts";
import { type JsonKind, kindOfFirst, kindOfValue, parseText, toJsonValue } from "./value.ts";

/** Bytes that one or several RawJson are parts of. */
interface JsonSource {
  /** All of it in one piece; made when it is needed, if it came in several. */
  bytes: Uint8Array | undefined;
  readonly pieced: Pieced | undefined;
  /** The same as text, where one character is one byte, so that a piece of it can be cut out by its offsets. */
  readonly ascii: string | undefined;
  /** Where a scan found the keys of its shape. */
  readonly index: Index | undefined;
}

/** JSON in the form that is cheapest to send: text, or bytes in one or several pieces. */
export type WrittenJson = string | readonly Uint8Array[];

/** Byte offsets of a member in the bytes of its object: of its key's opening quote, and of its value's start and end. */
export interface MemberSpan {
  readonly keyStart: number;
  readonly start: number;
  readonly end: number;
}

/**
 * JSON that was checked but not rebuilt. It is held as bytes, as text or as a value, whichever it came as; the other forms
 * are made when first asked for. JSON that came as bytes leaves as those bytes. How it is held is private: senders take
 * `written`, readers `text` or `value`.
 *
 * Immutable: the caller must not change the bytes or the value after handing them over. Members share memory with the whole, so
 * keeping one small member keeps the whole message.
 *
 * It has more than 15 members, because there are five ways in (a scan, bytes, text, a value, a parse) and
 * eight ways to read; each saves every message a conversion.
 *
 * @example
 * const { path } = call.arguments.value; // in a middleware: parsed when first asked for
 * return { arguments: RawJson.fromValue({ path: `/home/ada/${path}` }) };
 */
export class RawJson {
  /** Holds this JSON at [#start, #end); undefined until bytes are needed if it came in another form. */
  #source: JsonSource | undefined;
  readonly #start: number;
  #end: number;
  /** Whether a scan noted the members of this object, and under which keys. */
  readonly #level: ShapeLevel | undefined;
  #isForeign: boolean;
  #text: string | undefined;
  /** `undefined`, which is not a JSON value, until it is needed. */
  #value: unknown;

  private constructor(source?: JsonSource, start = 0, end = 0, level?: ShapeLevel) {
    this.#source = source;
    this.#isForeign = source !== undefined;
    this.#start = start;
    this.#end = end;
    this.#level = level;
  }

  /**
   * Checks untrusted bytes. White space around the value is left out.
   *
   * @throws JsonError
   */
  static parse(bytes: Uint8Array, limits: ScanLimits = {}): RawJson {
    return RawJson.fromScan(bytes, NO_KEYS, scan(bytes, NO_KEYS, limits));
  }

  /** Takes over what a scan found: members named in the shape are then reached without another pass. */
  static fromScan(scanned: Uint8Array | Pieced, shape: Shape, index: Index): RawJson {
    const source =
      scanned instanceof Pieced
        ? { bytes: undefined, pieced: scanned, ascii: undefined, index }
        : { bytes: scanned, pieced: undefined, ascii: toAsciiText(scanned), index };
    return new RawJson(source, index[1], index[2], shape.root);
  }

  /** Wraps bytes, in one piece or several, that are known to be exactly one JSON value. Not for bytes from outside: no check. */
  static fromChecked(bytes: Uint8Array | readonly Uint8Array[]): RawJson {
    if (bytes instanceof Uint8Array)
      return new RawJson({ bytes, pieced: undefined, ascii: undefined, index: undefined }, 0, bytes.length);
    const pieced = new Pieced(bytes);
    return new RawJson({ bytes: undefined, pieced, ascii: undefined, index: undefined }, 0, pieced.length);
  }

  /**
   * Wraps JSON text we made ourselves, without white space around it. Not for text from outside: no check. `isForeign` says
   * that part of it came from outside, checked, and may have line breaks between its tokens.
   */
  static fromText(text: string, isForeign = false): RawJson {
    const raw = new RawJson();
    raw.#text = text;
    raw.#isForeign = isForeign;
    return raw;
  }

  /**
   * Wraps a value as `JSON.stringify` would see it; that runs only if bytes or text are asked for, and not at all where the
   * text is given, which is not checked.
   *
   * @throws TypeError if JSON has no such value: undefined, a function, a symbol, a bigint
   */
  static fromValue(value: unknown, text?: string): RawJson {
    const raw = new RawJson();
    raw.#value = text === undefined ? toJsonValue(value) : value;
    raw.#text = text;
    return raw;
  }

  get bytes(): Uint8Array {
    const bytes = joined(this.#toSource());
    return this.#end - this.#start === bytes.length ? bytes : bytes.subarray(this.#start, this.#end);
  }

  /** The form that is cheapest to send. Throws for a value that JSON cannot hold, such as a cyclic one. */
  get written(): WrittenJson {
    const source = this.#source;
    if (source === undefined || this.#text !== undefined || source.ascii !== undefined) return this.text;
    if (source.bytes !== undefined || source.pieced === undefined) return [this.bytes];
    return source.pieced.cut(this.#start, this.#end);
  }

  get text(): string {
    this.#text ??=
      this.#source === undefined ? stringify(this.#value) : cutAll(this.#source, this.#start, this.#end);
    return this.#text;
  }

  /** The parsed value. Parsing is where precision is lost: forward `bytes`, look at `value`. */
  get value(): unknown {
    // The text is not kept: most readers of a value never ask for it.
    if (this.#value === undefined)
      this.#value = parseText(this.#text ?? cutAll(this.#source, this.#start, this.#end));
    return this.#value;
  }

  get byteLength(): number {
    return this.#source === undefined ? Buffer.byteLength(this.text) : this.#end - this.#start;
  }

  get kind(): JsonKind {
    const source = this.#source;
    if (source?.bytes !== undefined) return kindOfFirst(source.bytes[this.#start]);
    if (source?.pieced !== undefined) return kindOfFirst(source.pieced.at(this.#start));
    return this.#text === undefined ? kindOfValue(this.#value) : kindOfFirst(this.#text.charCodeAt(0));
  }

  /** Whether any of it came from outside. JSON of our own has no line breaks between its tokens. */
  get isForeign(): boolean {
    return this.#isForeign;
  }

  /**
   * A member of this object, not parsed; undefined if there is none or this is not an object. If a key occurs
   * twice, it is the last, as with `JSON.parse`; no scan lets a key of its shape occur twice.
   */
  at(key: string): RawJson | undefined {
    if (this.kind !== "object") return undefined;
    const source = this.#source;
    if (source === undefined && this.#text === undefined) return memberOfValue(this.#value as object, key);
    const known = this.#level?.byName.get(key);
    if (known !== undefined && source?.index !== undefined) {
      const start = source.index[known.slot + 1];
      if (start === -1) return undefined;
      return new RawJson(source, start, source.index[known.slot + 2], known.level);
    }
    const own = this.#toSource();
    const bytes = joined(own);
    let member: RawJson | undefined;
    forEachMember(bytes, this.#start, (keyStart, keyEnd, start, end) => {
      if (isKey(bytes, keyStart, keyEnd, key)) member = new RawJson(own, start, end);
    });
    return member;
  }

  /** Whether this is an object with this member. */
  has(key: string): boolean {
    const value = this.#value;
    if (typeof value === "object" && value !== null) return Object.hasOwn(value, key);
    const slot = this.#level?.byName.get(key)?.slot;
    const index = this.#source?.index;
    return slot === undefined || index === undefined ? this.at(key) !== undefined : index[slot] !== -1;
  }

  /** Whether a member that a scan noted is this very piece of the same bytes. False means unknown. */
  holds(key: string, member: RawJson): boolean {
    const slot = this.#level?.byName.get(key)?.slot;
    const index = this.#source?.index;
    if (slot === undefined || index === undefined || this.#source !== member.#source) return false;
    return index[slot + 1] === member.#start && index[slot + 2] === member.#end;
  }

  /**
   * Whether a scan noted that this object has only members with these keys, and no white space around them.
   * False means unknown.
   */
  hasOnly(keys: readonly string[]): boolean {
    const index = this.#source?.index;
    const level = this.#level;
    if (index === undefined || level === undefined) return false;
    // Each member has a comma or the closing brace behind it.
    let left = this.#end - this.#start - 1;
    for (const key of keys) {
      const slot = level.byName.get(key)?.slot;
      const start = slot === undefined ? -1 : (index[slot] ?? -1);
      if (slot === undefined || start === -1) continue;
      left -= (index[slot + 2] ?? start) + 1 - start;
      if (left === 0) return true;
    }
    return false;
  }

  /** `at(key)?.text`, without the `RawJson` in between for a member that a scan noted. */
  textOf(key: string): string | undefined {
    const slot = this.#level?.byName.get(key)?.slot;
    const source = this.#source;
    if (slot === undefined || source?.index === undefined) return this.at(key)?.text;
    const start = source.index[slot + 1] ?? -1;
    return start === -1 ? undefined : cut(source, start, source.index[slot + 2] ?? start);
  }

  /** Where in `bytes` a member is, if a scan noted it; undefined says nothing about whether it exists. */
  spanOf(key: string): MemberSpan | undefined {
    const slot = this.#level?.byName.get(key)?.slot;
    const index = this.#source?.index;
    if (slot === undefined || index === undefined || index[slot] === -1) return undefined;
    const offset = (at: number): number => (index[slot + at] ?? 0) - this.#start;
    return { keyStart: offset(0), start: offset(1), end: offset(2) };
  }

  /** For logs: `JSON.stringify` would show `{}`. It rewrites numbers, so it is not for forwarding. */
  toJSON(): unknown {
    return this.value;
  }

  #toSource(): JsonSource {
    if (this.#source === undefined) {
      const bytes = Buffer.from(this.text);
      this.#source = { bytes, pieced: undefined, ascii: undefined, index: undefined };
      this.#end = bytes.length;
    }
    return this.#source;
  }
}

function joined(source: JsonSource): Uint8Array {
  return (source.bytes ??= source.pieced?.join() ?? new Uint8Array());
}

/** The whole text at [start, end). Joins the pieces, unlike {@link cut}. */
function cutAll(source: JsonSource | undefined, start: number, end: number): string {
  if (source === undefined) return "";
  joined(source);
  return cut(source, start, end);
}

/** The text at [start, end). A small part of a source in pieces is not a reason to join them. */
function cut({ ascii, bytes, pieced }: JsonSource, start: number, end: number): string {
  if (ascii !== undefined) return ascii.slice(start, end);
  if (bytes !== undefined) return toText(bytes, start, end);
  const part = Buffer.concat(pieced?.cut(start, end) ?? []);
  return toText(part, 0, part.length);
}

function stringify(value: unknown): string {
  const text: string | undefined = JSON.stringify(value);
  if (text === undefined) throw new TypeError("The value turned into nothing when written as JSON");
  return text;
}

/** Up to here a whole message is decoded once, and its members are cut out of that. */
const maxWholeBytes = 4096;

/** The bytes as text if they are few and ASCII: then, and only then, UTF-8 has as many characters as bytes. */
function toAsciiText(bytes: Uint8Array): string | undefined {
  if (bytes.length > maxWholeBytes) return undefined;
  const text = toText(bytes, 0, bytes.length);
  return text.length === bytes.length ? text : undefined;
}

const NO_KEYS: Shape = defineShape({});

function memberOfValue(value: object, key: string): RawJson | undefined {
  // Own enumerable properties only, as JSON.stringify sees them: `__proto__` is then a key like any other.
  if (!Object.prototype.propertyIsEnumerable.call(value, key)) return undefined;
  const member: unknown = (value as { readonly [key: string]: unknown })[key];
  const isOmitted = member === undefined || typeof member === "function" || typeof member === "symbol";
  return isOmitted ? undefined : RawJson.fromValue(member);
}
