import { Buffer } from "node:buffer";
import { pastSpace } from "./past-space.ts";
import { RawJson } from "./raw.ts";

/**
 * One JSON value written as pieces: text of our own with checked JSON between. Stays text if every piece is, because
 * joining strings copies nothing.
 */
export function joinJson(parts: readonly (string | RawJson)[]): RawJson {
  if (!parts.some((part) => typeof part !== "string" && part.prefersBytes)) {
    let text = "";
    let isForeign = false;
    for (const part of parts) {
      if (typeof part === "string") text += part;
      else {
        text += part.text;
        isForeign ||= part.isForeign;
      }
    }
    return RawJson.fromText(text, isForeign);
  }
  return fromPieces(parts.flatMap((part) => (typeof part === "string" ? [Buffer.from(part)] : part.pieces)));
}

/** From here on a copy costs more than the trouble of several pieces. */
const minSeparateBytes = 64 * 1024;

function fromPieces(pieces: readonly Uint8Array[]): RawJson {
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
  return length < minSeparateBytes
    ? RawJson.fromChecked(Buffer.concat(pieces, length))
    : RawJson.fromPieces(pieces);
}

/**
 * An object with more members in front. `members` is their text, without braces; the caller knows that the object has
 * none of those keys.
 */
export function prependMembers(members: string, object: RawJson): RawJson {
  if (!object.prefersBytes) {
    const { text } = object;
    // Text of our own has no white space after the brace, and looking is cheaper than trimming.
    const rest = text.charCodeAt(1) <= 0x20 ? text.slice(1).trimStart() : text.slice(1);
    const joined = rest.charCodeAt(0) === 0x7d ? `{${members}}` : `{${members},${rest}`;
    return RawJson.fromText(joined, object.isForeign);
  }
  const start = pastSpace(object, 1, 1);
  const isEmpty = object.byteAt(start) === 0x7d;
  const rest = object.piecesOf(start, object.byteLength);
  return fromPieces([Buffer.from(isEmpty ? `{${members}` : `{${members},`), ...rest]);
}
