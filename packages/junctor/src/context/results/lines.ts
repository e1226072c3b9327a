import type { Buffer } from "node:buffer";

/** A line that is longer counts as several: a file may be one line. */
const maxLineBytes = 2000;

/** Some lines of a text. */
export interface ReadLines {
  readonly text: string;
  /** The number of the first line that was not read; undefined at the end. */
  readonly next: number | undefined;
}

/** Reads lines, the first of which is 1, until there are so many of them or of their bytes. At least one is read. */
export function readLines(bytes: Buffer, from: number, lines: number, maxBytes: number): ReadLines {
  let start: number | undefined;
  let number = 0;
  for (const [at, end] of spansOf(bytes)) {
    number++;
    if (number < from) continue;
    start ??= at;
    const isFull = number >= from + lines || (end - start > maxBytes && number > from);
    if (isFull) return { text: bytes.toString("utf8", start, at), next: number };
  }
  return { text: start === undefined ? "" : bytes.toString("utf8", start), next: undefined };
}

/** The lines that match, each after its number. */
export function matchLines(
  bytes: Buffer,
  matches: (line: string) => boolean,
  at: { from: number; maxBytes: number },
): ReadLines {
  let text = "";
  let number = 0;
  for (const [start, end] of spansOf(bytes)) {
    number++;
    if (number < at.from) continue;
    const line = bytes.toString("utf8", start, end);
    if (!matches(line)) continue;
    if (text.length + line.length > at.maxBytes && text !== "") return { text, next: number };
    text += `${number}: ${line.replace(/\n$/, "")}\n`;
  }
  return { text, next: undefined };
}

/** The beginning and end of each line, its line break included. */
function* spansOf(bytes: Buffer): Generator<readonly [number, number]> {
  let start = 0;
  while (start < bytes.length) {
    const limit = Math.min(bytes.length, start + maxLineBytes);
    let end = start;
    while (end < limit && bytes[end] !== 10) end++;
    if (end < limit) end++;
    // Not in the middle of a character.
    else while (end < bytes.length && ((bytes[end] ?? 0) & 0xc0) === 0x80) end++;
    yield [start, end];
    start = end;
  }
}
