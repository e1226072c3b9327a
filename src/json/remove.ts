import { pastSpace } from "./past-space.ts";
import { RawJson } from "./raw.ts";
import type { Span } from "./scan.ts";
import { editMembers } from "./splice.ts";

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
  return spans.length === 0 ? raw : leaveOut(raw, toCuts(raw, spans));
}

/** What to cut out, in order: each member with the comma behind it, and the last of an object with the one before it. */
function toCuts(raw: RawJson, members: readonly Span[]): readonly Span[] {
  const cuts: Span[] = [];
  for (const member of members.toSorted((a, b) => a.start - b.start)) {
    const after = pastSpace(raw, member.end, 1);
    const isLast = raw.byteAt(after) !== comma;
    const end = isLast ? after : pastSpace(raw, after + 1, 1);
    const isNeighbour = cuts.at(-1)?.end === member.start;
    const start = (isNeighbour ? cuts.pop()?.start : undefined) ?? member.start;
    cuts.push({ start: isLast ? beforeComma(raw, start) : start, end });
  }
  return cuts;
}

/** Where the comma before this position is; the position itself if there is none. */
function beforeComma(raw: RawJson, at: number): number {
  const before = pastSpace(raw, at - 1, -1);
  return raw.byteAt(before) === comma ? before : at;
}

function leaveOut(raw: RawJson, cuts: readonly Span[]): RawJson {
  const { byteLength } = raw;
  const kept: Span[] = [];
  let start = 0;
  for (const cut of cuts) {
    kept.push({ start, end: cut.start });
    start = cut.end;
  }
  kept.push({ start, end: byteLength });
  // Text can be cut by offsets of bytes only where one character is one byte.
  if (raw.prefersBytes || raw.text.length !== byteLength)
    return RawJson.fromPieces(kept.flatMap((span) => raw.piecesOf(span.start, span.end)));
  const { text } = raw;
  return RawJson.fromText(kept.map((span) => text.slice(span.start, span.end)).join(""), raw.isForeign);
}
