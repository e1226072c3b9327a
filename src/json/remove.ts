import { RawJson } from "./raw.ts";
import type { Span } from "./scan.ts";
import { editMembers } from "./splice.ts";
import { skipSpace } from "./tokens.ts";

const comma = 0x2c;

/**
 * An object without some of its members; every other byte stays as it was. Where a scan noted them, nothing is walked over
 * and nothing large is copied: what is text stays text, and what is bytes becomes pieces of the same bytes.
 *
 * @throws JsonError `json.not_an_object`
 */
export function withoutMembers(raw: RawJson, keys: readonly string[]): RawJson {
  const spans: Span[] = [];
  for (const key of keys) {
    if (!raw.has(key)) continue;
    const span = raw.memberSpanOf(key);
    if (span === undefined)
      return editMembers(raw, Object.fromEntries(keys.map((each) => [each, undefined])));
    spans.push(span);
  }
  return spans.length === 0 ? raw : leaveOut(raw, toCuts(raw.bytes, spans));
}

/** What to cut out, in order: each member with the comma behind it, and the last of an object with the one before it. */
function toCuts(bytes: Uint8Array, members: readonly Span[]): readonly Span[] {
  const cuts: Span[] = [];
  for (const member of members.toSorted((a, b) => a.start - b.start)) {
    const after = skipSpace(bytes, member.end);
    const isLast = bytes[after] !== comma;
    const end = isLast ? after : skipSpace(bytes, after + 1);
    const isNeighbour = cuts.at(-1)?.end === member.start;
    const start = (isNeighbour ? cuts.pop()?.start : undefined) ?? member.start;
    cuts.push({ start: isLast ? beforeComma(bytes, start) : start, end });
  }
  return cuts;
}

/** Where the comma before this position is; the position itself if there is none. */
function beforeComma(bytes: Uint8Array, at: number): number {
  let p = at - 1;
  while (isSpace(bytes[p])) p--;
  return bytes[p] === comma ? p : at;
}

function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

function leaveOut(raw: RawJson, cuts: readonly Span[]): RawJson {
  const { bytes } = raw;
  const kept: Span[] = [];
  let start = 0;
  for (const cut of cuts) {
    kept.push({ start, end: cut.start });
    start = cut.end;
  }
  kept.push({ start, end: bytes.length });
  // Text can be cut by offsets of bytes only where one character is one byte.
  if (raw.prefersBytes || raw.text.length !== bytes.length)
    return RawJson.fromPieces(kept.map((span) => bytes.subarray(span.start, span.end)));
  const { text } = raw;
  return RawJson.fromText(kept.map((span) => text.slice(span.start, span.end)).join(""), raw.isForeign);
}
