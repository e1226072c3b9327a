import { Buffer } from "node:buffer";
import { JsonError } from "../errors/index.ts";
import { foldCase, type ShapeKey, type ShapeLevel } from "./shape.ts";

/**
 * The key of the level that is written at `at`, its opening quote, plainly: ASCII without escapes. Knowing
 * the name, this checks the key's bytes while comparing them, so a known key is passed over once and not
 * twice, nothing is decoded and nothing allocated. Measured on a 265-byte call: 750 ns against 1,100 ns.
 */
export function findPlainKey(level: ShapeLevel, bytes: Uint8Array, at: number): ShapeKey | undefined {
  const candidates = level.byFirstByte[bytes[at + 1] ?? 0];
  if (candidates === undefined) return undefined;
  for (let k = 0; k < candidates.length; k++) {
    const key = candidates[k] as ShapeKey;
    const spelling = key.spelling;
    let i = 2;
    while (i < spelling.length && bytes[at + i] === spelling[i]) i++;
    if (i === spelling.length) return key;
  }
  return undefined;
}

/** The key of the level that is written at [start, end), quotes included, with escapes. */
export function findSpelledKey(
  level: ShapeLevel,
  bytes: Uint8Array,
  start: number,
  end: number,
): ShapeKey | undefined {
  if (end - start > level.maxSpelledBytes || isPlain(bytes, start, end)) return undefined;
  return level.byName.get(decodeKey(bytes, start, end));
}

/** The key of the level of which the key at [start, end), quotes included, is a case variant. */
export function findVariant(
  level: ShapeLevel,
  bytes: Uint8Array,
  start: number,
  end: number,
): ShapeKey | undefined {
  if (end - start > level.maxSpelledBytes) return undefined;
  // Spares most foreign keys the decoding, which costs 300 ns.
  if (isPlain(bytes, start, end) && !resemblesSome(level, bytes, start, end)) return undefined;
  return level.byFoldedName.get(foldCase(decodeKey(bytes, start, end)));
}

/** Whether the key is ASCII without escapes, so that its bytes are its characters. */
function isPlain(bytes: Uint8Array, start: number, end: number): boolean {
  for (let p = start; p < end; p++) {
    const byte = bytes[p] as number;
    if (byte === 0x5c || byte >= 0x80) return false;
  }
  return true;
}

/** Whether a plain key equals one of the level when the bit that ASCII cases differ in is ignored. */
function resemblesSome(level: ShapeLevel, bytes: Uint8Array, start: number, end: number): boolean {
  for (const { spelling } of level.byName.values()) {
    if (spelling.length !== end - start) continue;
    let i = 0;
    while (i < spelling.length && (((spelling[i] as number) ^ (bytes[start + i] as number)) & ~0x20) === 0)
      i++;
    if (i === spelling.length) return true;
  }
  return false;
}

/** What the checked key at [start, end), quotes included, says. */
export function decodeKey(bytes: Uint8Array, start: number, end: number): string {
  return JSON.parse(toText(bytes, start, end)) as string;
}

/** Decodes part of `bytes` as UTF-8. */
export function toText(bytes: Uint8Array, start: number, end: number): string {
  return toBuffer(bytes).toString("utf8", start, end);
}

/** The same memory as a Buffer, for the native decoding that a plain Uint8Array lacks. */
function toBuffer(bytes: Uint8Array): Buffer {
  if (bytes instanceof Buffer) return bytes;
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

const MAX_EXCERPT = 40;

/** A syntax error at `offset`: what the grammar wanted there, and what was found instead. */
export function syntaxError(bytes: Uint8Array, offset: number, expected: string): JsonError {
  return new JsonError("json.syntax", offset, `Expected ${expected}, found ${excerpt(bytes, offset)}`);
}

/** A byte order mark at the start: RFC 8259 §8.1 forbids sending one, and parsers disagree on it. */
export function bomError(): JsonError {
  return new JsonError("json.bom", 0, "The JSON text starts with a byte order mark");
}

export function utf8Error(bytes: Uint8Array): JsonError {
  const offset = firstInvalidByte(bytes);
  const hex = Buffer.from(bytes.subarray(offset, offset + 4)).toString("hex");
  return new JsonError("json.utf8", offset, `The bytes 0x${hex} are not UTF-8`);
}

export function trailingError(bytes: Uint8Array, offset: number): JsonError {
  return new JsonError(
    "json.trailing",
    offset,
    `Expected the end of the JSON text, found ${excerpt(bytes, offset)}`,
  );
}

export function depthError(offset: number, maxDepth: number): JsonError {
  return new JsonError("json.depth", offset, `Arrays and objects are nested more than ${maxDepth} deep`);
}

/**
 * The text found at `offset`, quoted, for an error message: at most 40 characters, with everything a
 * terminal or log might act on (control, bidirectional and line separator characters) escaped.
 */
export function excerpt(bytes: Uint8Array, offset: number, end: number = bytes.length): string {
  if (offset >= end) return "the end of the text";
  const shown = Buffer.from(bytes.subarray(offset, Math.min(end, offset + 4 * MAX_EXCERPT)));
  let quoted = "";
  for (const character of shown.toString("utf8")) {
    const next = quoted + escapeUnprintable(character);
    if (next.length > MAX_EXCERPT - 3) return `‘${quoted}…’`;
    quoted = next;
  }
  return `‘${quoted}’`;
}

function escapeUnprintable(character: string): string {
  if (!/[\p{C}\p{Zl}\p{Zp}]/u.test(character)) return character;
  return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
}

/**
 * Decoding replaces each wrong sequence by U+FFFD, so the text went wrong where the re-encoded text first
 * differs, or rather at the start of the character that byte belongs to: a cut-off sequence can agree with
 * U+FFFD's own bytes for a while. Slow, and only run on refused input.
 */
function firstInvalidByte(bytes: Uint8Array): number {
  const repaired = Buffer.from(Buffer.from(bytes).toString("utf8"));
  let p = 0;
  while (p < bytes.length && bytes[p] === repaired[p]) p++;
  while (((repaired[p] ?? 0) & 0xc0) === 0x80) p--;
  return p;
}
