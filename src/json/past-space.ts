import type { RawJson } from "./raw.ts";

/** The first position in the bytes of checked JSON, from here on in one direction, that is no white space. */
export function pastSpace(json: RawJson, at: number, step: 1 | -1): number {
  let p = at;
  let byte = json.byteAt(p);
  while (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09) byte = json.byteAt((p += step));
  return p;
}
