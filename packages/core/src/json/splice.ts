import { Buffer } from "node:buffer";
import { JsonError } from "../errors/index.ts";
import { forEachMember, isKey } from "./checked.ts";
import { Pieced } from "./pieced.ts";
import { type MemberSpan, RawJson } from "./raw.ts";
import { type Span, isSpace } from "./scan.ts";

/** What to do with the members of an object: set a key to a value, or remove it if undefined. */
type MemberEdits = { readonly [key: string]: RawJson | undefined };

/**
 * Sets and removes members of an object. A member that is there is replaced in place, a new one becomes
 * the first; every other byte stays as it was. If a key occurs twice each occurrence is edited, so that
 * no reader finds the old value, whichever it prefers.
 *
 * @throws JsonError `json.not_an_object`
 * @example
 * const forwarded = editMembers(params, { name: RawJson.fromValue('search'), requestState: undefined });
 */
export function editMembers(raw: RawJson, edits: MemberEdits): RawJson {
  if (raw.kind !== "object") {
    throw new JsonError(
      "json.not_an_object",
      0,
      `Members can be set in an object only, not in a ${raw.kind}`,
    );
  }
  const entries = Object.entries(edits);
  if (entries.length === 0) return raw;
  return editKnown(raw, entries) ?? editWalking(raw.bytes, entries);
}

type Edit = readonly [key: string, value: RawJson | undefined];

/** Edits members that a scan noted, without a walk over the object; undefined if it did not note each of them. */
function editKnown(raw: RawJson, edits: readonly Edit[]): RawJson | undefined {
  const patches: { readonly span: MemberSpan; readonly value: RawJson }[] = [];
  for (const [key, value] of edits) {
    const span = raw.spanOf(key);
    if (span === undefined || value === undefined) return undefined;
    patches.push({ span, value });
  }
  patches.sort((a, b) => a.span.start - b.span.start);
  const { bytes } = raw;
  const chunks: Uint8Array[] = [];
  let copied = 0;
  for (const { span, value } of patches) {
    chunks.push(bytes.subarray(copied, span.start), value.bytes);
    copied = span.end;
  }
  chunks.push(bytes.subarray(copied));
  return RawJson.fromChecked(Buffer.concat(chunks));
}

function editWalking(bytes: Uint8Array, edits: readonly Edit[]): RawJson {
  const missing = new Set(edits);
  const chunks: Uint8Array[] = [];
  /** Everything before this is in the chunks or left out on purpose. */
  let copied = 1;
  let previousEnd = 1;
  let hasKept = false;
  let hasRemovedFirst = false;
  forEachMember(bytes, 0, (keyStart, keyEnd, valueStart, valueEnd) => {
    const edit = edits.find(([key]) => isKey(bytes, keyStart, keyEnd, key));
    if (edit !== undefined) missing.delete(edit);
    // A removed member takes the comma before it along, or the one behind it if nothing kept comes before.
    if (hasRemovedFirst && !hasKept) copied = keyStart;
    if (edit !== undefined && edit[1] === undefined) {
      if (hasKept) chunks.push(bytes.subarray(copied, previousEnd));
      else if (!hasRemovedFirst) chunks.push(bytes.subarray(copied, keyStart));
      hasRemovedFirst ||= !hasKept;
      copied = valueEnd;
    } else {
      hasKept = true;
      if (edit?.[1] !== undefined) {
        chunks.push(bytes.subarray(copied, valueStart), edit[1].bytes);
        copied = valueEnd;
      }
    }
    previousEnd = valueEnd;
  });
  chunks.unshift(openObject(missing, hasKept));
  chunks.push(bytes.subarray(copied));
  return RawJson.fromChecked(Buffer.concat(chunks));
}

/** The bytes of `{` and the members to insert behind it. */
function openObject(inserted: Iterable<Edit>, hasMore: boolean): Uint8Array {
  const chunks: Uint8Array[] = [];
  for (const [key, value] of inserted) {
    if (value === undefined) continue;
    chunks.push(Buffer.from(`${chunks.length === 0 ? "{" : ","}${JSON.stringify(key)}:`), value.bytes);
  }
  if (chunks.length === 0) return Buffer.from("{");
  if (hasMore) chunks.push(Buffer.from(","));
  return Buffer.concat(chunks);
}

/**
 * An object without some of its members; every other byte stays as it was. Where a scan noted them, nothing is walked over
 * and nothing large is copied: text stays text, and bytes become pieces of the same bytes.
 *
 * @throws JsonError `json.not_an_object`
 */
export function withoutMembers(raw: RawJson, keys: readonly string[]): RawJson {
  const members: Span[] = [];
  for (const key of keys) {
    if (!raw.has(key)) continue;
    const span = raw.spanOf(key);
    if (span === undefined)
      return editMembers(raw, Object.fromEntries(keys.map((each) => [each, undefined])));
    members.push({ start: span.keyStart, end: span.end });
  }
  return members.length === 0 ? raw : leaveOut(raw, members);
}

function leaveOut(raw: RawJson, members: readonly Span[]): RawJson {
  const { written, byteLength } = raw;
  // Text can be cut by offsets of bytes only where one character is one byte.
  if (typeof written === "string" && written.length === byteLength) {
    const kept = spansLeft(members, byteLength, (at) => written.charCodeAt(at));
    return RawJson.fromText(kept.map(({ start, end }) => written.slice(start, end)).join(""), raw.isForeign);
  }
  const pieced = new Pieced(typeof written === "string" ? [raw.bytes] : written);
  const kept = spansLeft(members, byteLength, (at) => pieced.at(at));
  return RawJson.fromChecked(kept.flatMap(({ start, end }) => pieced.cut(start, end)));
}

/**
 * The rest of an object when members are cut out, each with the comma behind it, and the last of an object with the comma
 * before it.
 */
function spansLeft(
  members: readonly Span[],
  length: number,
  byteAt: (at: number) => number | undefined,
): readonly Span[] {
  const pastSpace = (at: number, step: 1 | -1): number => {
    let p = at;
    while (isSpace(byteAt(p))) p += step;
    return p;
  };
  const cuts: Span[] = [];
  for (const member of members.toSorted((a, b) => a.start - b.start)) {
    const after = pastSpace(member.end, 1);
    const isLast = byteAt(after) !== comma;
    const isNeighbour = cuts.at(-1)?.end === member.start;
    const start = (isNeighbour ? cuts.pop()?.start : undefined) ?? member.start;
    const before = pastSpace(start - 1, -1);
    cuts.push({
      start: isLast && byteAt(before) === comma ? before : start,
      end: isLast ? after : pastSpace(after + 1, 1),
    });
  }
  const ends = [...cuts.map((cut) => cut.start), length];
  return ends.map((end, index) => ({ start: cuts[index - 1]?.end ?? 0, end }));
}

const comma = 0x2c;

/**
 * One JSON value written as parts: text of our own with checked JSON between. Stays text if every part is, because joining
 * strings copies nothing.
 */
export function joinJson(parts: readonly (string | RawJson)[]): RawJson {
  let text = "";
  let isForeign = false;
  let pieces: Uint8Array[] | undefined;
  for (const part of parts) {
    const written = typeof part === "string" ? part : part.written;
    if (typeof part !== "string") isForeign ||= part.isForeign;
    if (typeof written === "string") text += written;
    else {
      pieces ??= [];
      if (text !== "") pieces.push(Buffer.from(text));
      text = "";
      for (const piece of written) pieces.push(piece);
    }
  }
  if (pieces === undefined) return RawJson.fromText(text, isForeign);
  if (text !== "") pieces.push(Buffer.from(text));
  return fromPieces(pieces);
}

/** From this size on, a copy costs more than several pieces do. */
const minSeparateBytes = 64 * 1024;

function fromPieces(pieces: readonly Uint8Array[]): RawJson {
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
  return RawJson.fromChecked(length < minSeparateBytes ? Buffer.concat(pieces, length) : pieces);
}

/**
 * An object with more members in front. `members` is their text, without braces; the caller knows that the object has
 * none of those keys.
 */
export function prependMembers(members: string, object: RawJson): RawJson {
  const { written } = object;
  if (typeof written === "string") {
    // Text of our own has no white space after the brace, and looking is cheaper than trimming.
    const rest = written.charCodeAt(1) <= 0x20 ? written.slice(1).trimStart() : written.slice(1);
    const joined = rest.charCodeAt(0) === 0x7d ? `{${members}}` : `{${members},${rest}`;
    return RawJson.fromText(joined, object.isForeign);
  }
  const pieced = new Pieced(written);
  let start = 1;
  while (isSpace(pieced.at(start))) start++;
  const isEmpty = pieced.at(start) === 0x7d;
  const head = Buffer.from(isEmpty ? `{${members}` : `{${members},`);
  return fromPieces([head, ...pieced.cut(start, pieced.length)]);
}

/** An object with these members, each as the bytes that came. */
export function joinMembers(members: { readonly [key: string]: RawJson }): RawJson {
  const parts = Object.entries(members).flatMap(([key, member], index) => [
    `${index === 0 ? "" : ","}${JSON.stringify(key)}:`,
    member,
  ]);
  return joinJson(["{", ...parts, "}"]);
}
