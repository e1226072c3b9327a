import { Buffer } from "node:buffer";
import { forEachMember, isKey } from "./checked.ts";
import { toText } from "./keys.ts";
import { type JsonKind, kindOfFirst, kindOfValue } from "./kind.ts";
import { Pieced } from "./pieced.ts";
import { type Index, type ScanLimits, type Span, scan } from "./scan.ts";
import { defineShape, type Shape, type ShapeLevel } from "./shape.ts";
import { parseText, toJsonValue } from "./value.ts";

/**
 * JSON that was checked but not rebuilt. It is held as bytes, as text or as a value, whichever it came
 * as; the other forms are made when first asked for, and kept. What came as bytes leaves as those bytes.
 *
 * Immutable: nobody may change the bytes or the value after handing them over. Members share memory
 * with the whole, so keeping one small member keeps the whole message.
 *
 * @example
 * const params = RawJson.parse(bytes).at('params');
 * socket.write(params.bytes); // 1.0 is still 1.0
 */
export class RawJson {
  /** Holds this JSON at [#start, #end); undefined until bytes are needed if it came in another form. */
  #source: Uint8Array | undefined;
  #start: number;
  #end: number;
  #isForeign: boolean;
  /** The source in several pieces, until somebody needs it in one. */
  readonly #pieced: Pieced | undefined;
  /** The source as text, where one character is one byte, so that a piece of it can be cut out by its offsets. */
  readonly #whole: string | undefined;
  #bytes: Uint8Array | undefined;
  #text: string | undefined;
  /** `undefined`, which is no JSON value, until it is needed. */
  #value: unknown;
  /** Where a scan found the members of this object; undefined if no scan looked inside it. */
  readonly #level: ShapeLevel | undefined;
  readonly #index: Index | undefined;

  private constructor(
    source?: Uint8Array,
    start = 0,
    end = 0,
    whole?: string,
    level?: ShapeLevel,
    index?: Index,
    pieced?: Pieced,
  ) {
    this.#source = source;
    this.#pieced = pieced;
    this.#isForeign = source !== undefined || pieced !== undefined;
    this.#start = start;
    this.#end = end;
    this.#whole = whole;
    this.#level = level;
    this.#index = index;
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
  static fromScan(bytes: Uint8Array, shape: Shape, index: Index): RawJson {
    return new RawJson(bytes, index[1], index[2], toAsciiText(bytes), shape.root, index);
  }

  /** The same for bytes in pieces. */
  static fromPiecedScan(pieced: Pieced, shape: Shape, index: Index): RawJson {
    return new RawJson(undefined, index[1], index[2], undefined, shape.root, index, pieced);
  }

  /** Wraps bytes that are known to be exactly one JSON value. Not for bytes from outside: no check. */
  static fromChecked(bytes: Uint8Array): RawJson {
    return new RawJson(bytes, 0, bytes.length);
  }

  /** Wraps pieces that are, one after the other, exactly one JSON value. Not for bytes from outside: no check. */
  static fromPieces(pieces: readonly Uint8Array[]): RawJson {
    const pieced = new Pieced(pieces);
    return new RawJson(undefined, 0, pieced.length, undefined, undefined, undefined, pieced);
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
   * Wraps a value as `JSON.stringify` would see it; that runs only if bytes or text are asked for.
   *
   * @throws TypeError if JSON has no such value: undefined, a function, a symbol, a bigint
   */
  static fromValue(value: unknown): RawJson {
    const raw = new RawJson();
    raw.#value = toJsonValue(value);
    return raw;
  }

  /** Wraps a value whose text is known already. Not for what comes from outside: no check that they agree. */
  static fromWritten(value: object, text: string): RawJson {
    const raw = new RawJson();
    raw.#value = value;
    raw.#text = text;
    return raw;
  }

  get bytes(): Uint8Array {
    if (this.#bytes === undefined) {
      const source = this.#toSource();
      const isWhole = this.#end - this.#start === source.length;
      this.#bytes = isWhole ? source : source.subarray(this.#start, this.#end);
    }
    return this.#bytes;
  }

  /** The same as `bytes`, in as many pieces as it was made of: for those who can write them one after the other. */
  get pieces(): readonly Uint8Array[] {
    return this.piecesOf(0, this.byteLength);
  }

  /** The bytes at [start, end) of `bytes`, in as many pieces as they lie in. */
  piecesOf(start: number, end: number): readonly Uint8Array[] {
    if (this.#source === undefined && this.#pieced !== undefined)
      return this.#pieced.cut(this.#start + start, this.#start + end);
    return [start === 0 && end === this.byteLength ? this.bytes : this.bytes.subarray(start, end)];
  }

  /** One of `bytes`; undefined beyond their end. */
  byteAt(offset: number): number | undefined {
    if (offset < 0 || offset >= this.byteLength) return undefined;
    const at = this.#start + offset;
    return this.#source === undefined && this.#pieced !== undefined
      ? this.#pieced.at(at)
      : this.#toSource()[at];
  }

  get text(): string {
    this.#text ??= this.#decode();
    return this.#text;
  }

  /** The parsed value. Parsing is where precision is lost: forward `bytes`, look at `value`. */
  get value(): unknown {
    if (this.#value === undefined) this.#value = parseText(this.#text ?? this.#decode());
    return this.#value;
  }

  get byteLength(): number {
    const isInBytes = this.#source !== undefined || this.#pieced !== undefined;
    return isInBytes ? this.#end - this.#start : Buffer.byteLength(this.text);
  }

  /** About how long the text is, without making any: exact for text, bytes for bytes, 0 for a value nobody wrote yet. */
  get textLength(): number {
    return this.#text?.length ?? this.#end - this.#start;
  }

  get kind(): JsonKind {
    if (this.#source !== undefined) return kindOfFirst(this.#source[this.#start]);
    if (this.#pieced !== undefined) return kindOfFirst(this.#pieced.at(this.#start));
    if (this.#text !== undefined) return kindOfFirst(this.#text.charCodeAt(0));
    return kindOfValue(this.#value);
  }

  /** Whether any of it came from outside. What is all our own has no white space that we did not put there. */
  get isForeign(): boolean {
    return this.#isForeign;
  }

  /** Whether it came as bytes, and turning it into text would cost more than cutting it out of a text there is. */
  get prefersBytes(): boolean {
    const isInBytes = this.#source !== undefined || this.#pieced !== undefined;
    return isInBytes && this.#text === undefined && this.#whole === undefined;
  }

  /** Whether this came as a value and has not been needed as bytes or text so far. */
  get isValueOnly(): boolean {
    return this.#source === undefined && this.#pieced === undefined && this.#text === undefined;
  }

  /**
   * A member of this object, not parsed; undefined if there is none or this is no object. Of a key that
   * occurs twice, the last, as with `JSON.parse`; no scan lets a key of its shape occur twice.
   */
  at(key: string): RawJson | undefined {
    if (this.kind !== "object") return undefined;
    if (this.isValueOnly) return memberOfValue(this.#value as object, key);
    const known = this.#level?.byName.get(key);
    if (known !== undefined && this.#index !== undefined) {
      const start = this.#index[known.slot + 1];
      if (start === -1) return undefined;
      const end = this.#index[known.slot + 2];
      return new RawJson(this.#source, start, end, this.#whole, known.level, this.#index, this.#pieced);
    }
    const source = this.#toSource();
    let member: RawJson | undefined;
    forEachMember(source, this.#start, (keyStart, keyEnd, start, end) => {
      if (isKey(source, keyStart, keyEnd, key)) member = new RawJson(source, start, end, this.#whole);
    });
    return member;
  }

  /** Whether this is an object with such a member. */
  has(key: string): boolean {
    const value = this.#value;
    if (typeof value === "object" && value !== null) return Object.hasOwn(value, key);
    const slot = this.#level?.byName.get(key)?.slot;
    if (slot === undefined || this.#index === undefined) return this.at(key) !== undefined;
    return this.#index[slot] !== -1;
  }

  /** `at(key)?.text` for a member that a scan noted, without making anything else of it. */
  textOf(key: string): string | undefined {
    const slot = this.#level?.byName.get(key)?.slot;
    if (slot === undefined || this.#index === undefined) return this.at(key)?.text;
    const start = this.#index[slot + 1] ?? -1;
    return start === -1 ? undefined : this.#cut(start, this.#index[slot + 2] ?? start);
  }

  /** Where in `bytes` a member is, if a scan noted it; undefined says nothing about whether it exists. */
  spanOf(key: string): Span | undefined {
    const slot = this.#level?.byName.get(key)?.slot;
    if (slot === undefined || this.#index === undefined || this.#index[slot] === -1) return undefined;
    const start = (this.#index[slot + 1] ?? 0) - this.#start;
    return { start, end: (this.#index[slot + 2] ?? 0) - this.#start };
  }

  /** Like {@link RawJson.spanOf}, from the opening quote of the key on. */
  memberSpanOf(key: string): Span | undefined {
    const slot = this.#level?.byName.get(key)?.slot;
    if (slot === undefined || this.#index === undefined || this.#index[slot] === -1) return undefined;
    return { start: (this.#index[slot] ?? 0) - this.#start, end: (this.#index[slot + 2] ?? 0) - this.#start };
  }

  /** For logs: `JSON.stringify` would show `{}`. It spells numbers anew, so it is not for forwarding. */
  toJSON(): unknown {
    return this.value;
  }

  #toSource(): Uint8Array {
    if (this.#source === undefined) {
      if (this.#pieced !== undefined) return (this.#source = this.#pieced.join());
      this.#source = Buffer.from(this.text);
      this.#end = this.#source.length;
    }
    return this.#source;
  }

  #decode(): string {
    if (this.#pieced !== undefined) this.#toSource();
    if (this.#source !== undefined) return this.#cut(this.#start, this.#end);
    const text: string | undefined = JSON.stringify(this.#value);
    if (text === undefined) throw new TypeError("The value turned into nothing when written as JSON");
    return text;
  }

  #cut(start: number, end: number): string {
    if (this.#whole !== undefined) return this.#whole.slice(start, end);
    if (this.#source !== undefined) return toText(this.#source, start, end);
    // A small part of what is in pieces is no reason to join them.
    const part = Buffer.concat(this.#pieced?.cut(start, end) ?? []);
    return toText(part, 0, part.length);
  }
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
