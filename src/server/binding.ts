import { createHash } from "node:crypto";
import type { RawJson } from "../json/raw.ts";

/**
 * What a sealed state is good for: this caller, this method, this name or URI, these arguments. The arguments are bound
 * as the bytes that came, because two spellings of one number can be two numbers to somebody.
 */
export function toBinding(caller: string | undefined, method: string, params: RawJson | undefined): string {
  const hash = createHash("sha256");
  for (const key of ["name", "uri", "arguments"]) {
    const member = params?.at(key);
    hash.update(member === undefined ? "-" : `${member.byteLength}:`);
    if (member !== undefined) hash.update(member.bytes);
  }
  return JSON.stringify([caller ?? null, method, hash.digest("base64url")]);
}
