/**
 * The tokens of RFC 8259, over untrusted bytes. Each function is given the position of a token's first
 * byte, checks the whole token and returns the position after it, or throws a JsonError. Reading past
 * the end gives `undefined`, which equals no byte and so fails every check.
 */
import { syntaxError } from "./keys.ts";

/**
 * The position of the first byte at or after `at` that is not white space (RFC 8259 §2). Most JSON has
 * none, and leaving at the first comparison more than halves the time of a text of many small values.
 */
export function skipSpace(bytes: Uint8Array, at: number): number {
  let p = at;
  let byte = bytes[p];
  if (byte !== undefined && byte > 0x20) return p;
  while (isSpace(byte)) byte = bytes[++p];
  return p;
}

export function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

/**
 * A string this long is finished in words of four bytes. Below it a byte loop wins: making the word view
 * costs 100 ns, as much as 100 bytes one by one.
 */
const SHORT_STRING_BYTES = 96;

/** Checks a string: no bare control character, every escape complete. UTF-8 was checked before. */
export function skipString(bytes: Uint8Array, at: number): number {
  const far = at + SHORT_STRING_BYTES;
  let p = at + 1;
  while (p < far) {
    const byte = bytes[p];
    // Small letters first: 8 % off a whole 265-byte call.
    if (byte !== undefined && byte > 0x5c) p++;
    else if (byte === 0x22) return p + 1;
    else if (byte === 0x5c) p = skipEscape(bytes, p);
    else if (byte !== undefined && byte >= 0x20) p++;
    else throw stringError(bytes, p);
  }
  return skipLongString(bytes, p);
}

/** Measured on a 1 MB string: 2.2 GB/s against 0.8 GB/s for the byte loop. */
function skipLongString(bytes: Uint8Array, at: number): number {
  const lead = -bytes.byteOffset & 3;
  const words = new Int32Array(bytes.buffer, bytes.byteOffset + lead, (bytes.length - lead) >> 2);
  let p = at;
  for (;;) {
    if (((p - lead) & 3) === 0) p = lead + 4 * skipPlainWords(words, (p - lead) >> 2);
    const byte = bytes[p];
    if (byte === 0x22) return p + 1;
    if (byte === 0x5c) p = skipEscape(bytes, p);
    else if (byte !== undefined && byte >= 0x20) p++;
    else throw stringError(bytes, p);
  }
}

/**
 * Passes over words in which no byte needs a look, testing four bytes at once: subtracting borrows into
 * a byte's top bit exactly when the byte is below what is subtracted. Flipping bit 1 puts the quote
 * (0x22 → 0x20) next to the control characters, so one subtraction finds both; another the backslash.
 */
function skipPlainWords(words: Int32Array, from: number): number {
  for (let i = from; i < words.length; i++) {
    const word = words[i] as number;
    const controlOrQuote = (word ^ 0x02020202) - 0x21212121;
    const backslash = (word ^ 0x5c5c5c5c) - 0x01010101;
    if (((controlOrQuote | backslash) & ~word & 0x80808080) !== 0) return i;
  }
  return words.length;
}

function skipEscape(bytes: Uint8Array, at: number): number {
  switch (bytes[at + 1]) {
    case 0x22: // "
    case 0x5c: // \
    case 0x2f: // /
    case 0x62: // b
    case 0x66: // f
    case 0x6e: // n
    case 0x72: // r
    case 0x74: // t
      return at + 2;
    case 0x75: // u
      for (let p = at + 2; p < at + 6; p++) {
        if (!isHexDigit(bytes[p])) throw syntaxError(bytes, at, "four hexadecimal digits after \\u");
      }
      return at + 6;
    default:
      throw syntaxError(bytes, at, 'one of " \\ / b f n r t u after a backslash');
  }
}

function isHexDigit(byte: number | undefined): boolean {
  if (byte === undefined) return false;
  const lower = byte | 0x20;
  return (byte >= 0x30 && byte <= 0x39) || (lower >= 0x61 && lower <= 0x66);
}

/** Checks a number (RFC 8259 §6). Any size and precision: the value is never computed. */
export function skipNumber(bytes: Uint8Array, at: number): number {
  let p = at;
  if (bytes[p] === 0x2d) p++;
  p = bytes[p] === 0x30 ? p + 1 : skipDigits(bytes, p);
  if (bytes[p] === 0x2e) p = skipDigits(bytes, p + 1);
  if (bytes[p] === 0x65 || bytes[p] === 0x45) {
    p++;
    if (bytes[p] === 0x2b || bytes[p] === 0x2d) p++;
    p = skipDigits(bytes, p);
  }
  return p;
}

function skipDigits(bytes: Uint8Array, at: number): number {
  let p = at;
  for (let byte = bytes[p]; byte !== undefined && byte >= 0x30 && byte <= 0x39; byte = bytes[p]) p++;
  if (p === at) throw syntaxError(bytes, at, "a digit");
  return p;
}

/** Checks `true`, `false` or `null`, whichever the first byte announces. */
export function skipLiteral(bytes: Uint8Array, at: number): number {
  switch (bytes[at]) {
    case 0x74:
      if (bytes[at + 1] === 0x72 && bytes[at + 2] === 0x75 && bytes[at + 3] === 0x65) return at + 4;
      throw syntaxError(bytes, at, "true");
    case 0x66:
      if (bytes[at + 1] === 0x61 && bytes[at + 2] === 0x6c && bytes[at + 3] === 0x73) {
        if (bytes[at + 4] === 0x65) return at + 5;
      }
      throw syntaxError(bytes, at, "false");
    default:
      if (bytes[at + 1] === 0x75 && bytes[at + 2] === 0x6c && bytes[at + 3] === 0x6c) return at + 4;
      throw syntaxError(bytes, at, "null");
  }
}

function stringError(bytes: Uint8Array, offset: number): Error {
  return syntaxError(bytes, offset, "the rest of a string, control characters escaped");
}
