import { Buffer } from "node:buffer";
import { Pieced } from "./pieced.ts";
import { RawJson } from "./raw.ts";
import { isSpace } from "./tokens.ts";

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

/** From here on a copy costs more than the trouble of several pieces. */
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
