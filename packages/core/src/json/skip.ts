import { depthError, syntaxError } from "./refuse.ts";
import { skipLiteral, skipNumber, skipSpace, skipString } from "./tokens.ts";

/**
 * For each open array or object of the value being skipped, 1 if it is an object. Shared by all calls,
 * which never overlap: skipping is synchronous and does not call itself.
 */
let isObjectAt: Uint8Array = new Uint8Array(256);

/**
 * Checks the value that starts at `at` and returns the position after it. `outerDepth` counts what is
 * already open around it. A loop and not a recursion, so a million `[` cost a refusal and not the stack.
 *
 * @throws JsonError `json.syntax` or `json.depth`
 */
export function skipValue(bytes: Uint8Array, at: number, outerDepth: number, maxDepth: number): number {
  const room = maxDepth - outerDepth;
  let open = 0;
  let p = at;
  for (;;) {
    switch (bytes[p]) {
      case 0x22: // "
        p = skipString(bytes, p);
        break;
      case 0x7b: // {
        if (open === room) throw depthError(p, maxDepth);
        pushContainer(open++, 1);
        p = skipSpace(bytes, p + 1);
        if (bytes[p] === 0x7d) break;
        p = skipKeyAndColon(bytes, p);
        continue;
      case 0x5b: // [
        if (open === room) throw depthError(p, maxDepth);
        pushContainer(open++, 0);
        p = skipSpace(bytes, p + 1);
        if (bytes[p] === 0x5d) break;
        continue;
      case 0x74: // t
      case 0x66: // f
      case 0x6e: // n
        p = skipLiteral(bytes, p);
        break;
      default:
        if (!startsNumber(bytes[p])) throw syntaxError(bytes, p, "a value");
        p = skipNumber(bytes, p);
    }
    // A value ended at p, or p is at the bracket that closes an empty array or object.
    for (;;) {
      if (open === 0) return p;
      p = skipSpace(bytes, p);
      const inObject = isObjectAt[open - 1] === 1;
      if (bytes[p] === 0x2c) {
        p = skipSpace(bytes, p + 1);
        if (inObject) p = skipKeyAndColon(bytes, p);
        break;
      }
      if (bytes[p] !== (inObject ? 0x7d : 0x5d)) {
        throw syntaxError(bytes, p, inObject ? "a comma or }" : "a comma or ]");
      }
      open--;
      p++;
    }
  }
}

/** Checks `"key" :` and returns where the value starts. */
function skipKeyAndColon(bytes: Uint8Array, at: number): number {
  if (bytes[at] !== 0x22) throw syntaxError(bytes, at, "a key in double quotes");
  return skipColon(bytes, skipString(bytes, at));
}

/** Checks the colon after a key, white space around it, and returns where the value starts. */
export function skipColon(bytes: Uint8Array, at: number): number {
  const p = skipSpace(bytes, at);
  if (bytes[p] !== 0x3a) throw syntaxError(bytes, p, "a colon after the key");
  return skipSpace(bytes, p + 1);
}

function startsNumber(byte: number | undefined): boolean {
  return byte !== undefined && ((byte >= 0x30 && byte <= 0x39) || byte === 0x2d);
}

function pushContainer(open: number, isObject: 0 | 1): void {
  if (open === isObjectAt.length) {
    const larger = new Uint8Array(isObjectAt.length * 2);
    larger.set(isObjectAt);
    isObjectAt = larger;
  }
  isObjectAt[open] = isObject;
}
