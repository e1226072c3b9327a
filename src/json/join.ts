import { Buffer } from "node:buffer";
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
  const isLarge = pieces.some(({ length }) => length >= minSeparateBytes);
  return isLarge ? RawJson.fromPieces(pieces) : RawJson.fromChecked(Buffer.concat(pieces));
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
  const { bytes } = object;
  let start = 1;
  while (bytes[start] === 0x20 || bytes[start] === 0x0a || bytes[start] === 0x0d || bytes[start] === 0x09)
    start++;
  const isEmpty = bytes[start] === 0x7d;
  return fromPieces([Buffer.from(isEmpty ? `{${members}` : `{${members},`), bytes.subarray(start)]);
}
