import { Buffer } from "node:buffer";
import { JsonError } from "../errors/index.ts";

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
