import { Buffer } from "node:buffer";

const prefix = "=?base64?";
const suffix = "?=";

/**
 * Writes a string as the value of a mirrored header (2026-07-28, Streamable HTTP): as it is when it is plain visible
 * ASCII, else as base64 between markers. A value that looks marked already is marked again, so reading is unambiguous.
 */
export function encodeHeaderValue(text: string): string {
  const isPlain = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(text) && !isMarked(text);
  return isPlain || text === "" ? text : `${prefix}${Buffer.from(text, "utf8").toString("base64")}${suffix}`;
}

/** Reads a mirrored header's value; undefined when it is marked as base64 but is not canonical base64 of UTF-8. */
export function decodeHeaderValue(value: string): string | undefined {
  if (!isMarked(value)) return value;
  const encoded = value.slice(prefix.length, -suffix.length);
  const bytes = Buffer.from(encoded, "base64");
  if (bytes.toString("base64") !== encoded) return undefined;
  const text = bytes.toString("utf8");
  return Buffer.from(text, "utf8").equals(bytes) ? text : undefined;
}

function isMarked(value: string): boolean {
  return value.length >= prefix.length + suffix.length && value.startsWith(prefix) && value.endsWith(suffix);
}
