import { Buffer } from "node:buffer";
import { RawJson } from "./raw.ts";
import { parseText } from "./value.ts";

/**
 * Rewrites the strings of a JSON text that was checked before: `rewrite` gets each value that is a string,
 * decoded, and what it returns is written if it differs. `rewriteKey` does the same for keys; keys that
 * become equal are numbered over the whole text. Numbers, white space and unchanged strings are not touched;
 * if nothing changes, the very same text is returned.
 *
 * @example
 * rewriteStrings('{"a":1.0,"b":"\\u0040"}', (value) => value.replace("@", " at ")); // {"a":1.0,"b":" at "}
 */
export function rewriteStrings(
  text: string,
  rewrite: (value: string) => string,
  rewriteKey?: (key: string) => string,
): string {
  const numbered = new Map<string, number>();
  const toFree = (key: string): string => {
    const count = (numbered.get(key) ?? 0) + 1;
    numbered.set(key, count);
    return count === 1 ? key : `${key} (${count})`;
  };
  let rewritten = "";
  /** Everything before this is in `rewritten`. */
  let copied = 0;
  let end = 0;
  for (let start = text.indexOf('"'); start !== -1; start = text.indexOf('"', end)) {
    end = afterString(text, start);
    const isOfKey = isKey(text, end);
    if (isOfKey && rewriteKey === undefined) continue;
    const value = parseText(text.slice(start, end)) as string;
    const replacement = isOfKey ? (rewriteKey?.(value) ?? value) : rewrite(value);
    if (replacement === value) continue;
    rewritten += text.slice(copied, start) + JSON.stringify(isOfKey ? toFree(replacement) : replacement);
    copied = end;
  }
  return copied === 0 ? text : rewritten + text.slice(copied);
}

/** The position after the string that starts at `start`. */
function afterString(text: string, start: number): number {
  let quote = text.indexOf('"', start + 1);
  while (isEscaped(text, quote)) quote = text.indexOf('"', quote + 1);
  return quote + 1;
}

/** An odd number of backslashes before a character escapes it; an even number are escaped themselves. */
function isEscaped(text: string, at: number): boolean {
  let p = at - 1;
  while (text.charCodeAt(p) === 0x5c) p--;
  return ((at - p) & 1) === 0;
}

/** In JSON a colon follows every key and no value. */
function isKey(text: string, end: number): boolean {
  let p = end;
  while (text.charCodeAt(p) <= 0x20) p++;
  return text.charCodeAt(p) === 0x3a;
}

/** A string, with the colon behind it if it is a key; a number; or the beginning or end of an object. */
const token = /("[^"\\]*(?:\\.[^"\\]*)*")(\s*:)?|-?[0-9][0-9.eE+-]*|[{}]/g;

/**
 * Rewrites all that a JSON text says, keys and numbers included. `rewrite` gets every key, string and number
 * as text, and returns as many texts. A number whose text it changes becomes a string. A key that comes a
 * second time in its object is numbered, so that no member takes the place of another.
 *
 * It gets each number twice: as it is written, and as JavaScript writes it, because others
 * may know it in that form.
 *
 * @example
 * rewriteTexts('{"a@b.c":1,"d":22}', (texts) => texts.map((text) => text.replace(/.*@.*|22/, "x"))); // {"x":1,"d":"x"}
 */
export function rewriteTexts(json: string, rewrite: (texts: readonly string[]) => readonly string[]): string {
  const texts: string[] = [];
  for (const [found, quoted] of json.matchAll(token)) {
    if (quoted !== undefined) texts.push(parseText(quoted) as string);
    else if (isNumber(found)) texts.push(found, String(Number(found)));
  }
  const rewritten = rewrite(texts);
  let at = 0;
  const next = (): string => rewritten[at++] ?? "";
  const objects: KeyNumbers[] = [];
  return json.replace(token, (found: string, quoted?: string, colon?: string) => {
    if (quoted !== undefined) {
      const text = next();
      return colon === undefined ? JSON.stringify(text) : JSON.stringify(distinct(text, objects)) + colon;
    }
    if (isNumber(found)) {
      const [written, plain] = [next(), next()];
      if (written !== found) return JSON.stringify(written);
      return plain === String(Number(found)) ? found : JSON.stringify(plain);
    }
    if (found === "{") objects.push(new Map());
    else objects.pop();
    return found;
  });
}

/** The keys that an object has so far, each with how often it occurred. */
type KeyNumbers = Map<string, number>;

/** A key that the innermost object does not have yet. */
function distinct(key: string, objects: readonly KeyNumbers[]): string {
  const keys = objects.at(-1);
  if (keys === undefined) return key;
  let count = keys.get(key) ?? 0;
  let free = key;
  while (keys.has(free)) free = `${key} (${++count})`;
  keys.set(key, Math.max(count, 1));
  keys.set(free, keys.get(free) ?? 1);
  return free;
}

function isNumber(found: string): boolean {
  return found !== "{" && found !== "}";
}

/**
 * The same JSON without a line break, for wherever a line is a message: stdio, TCP, SSE data. A sender may put
 * line feeds between tokens and so make one element of an array a line, and a message, of its own, which
 * was never authorised. Strings cannot hold the bytes 0x0A and 0x0D, so each one is white space and may become a
 * space; nothing else changes, and JSON that has none is returned as it is.
 *
 * @example
 * socket.write(toOneLine(message).bytes);
 */
export function toOneLine(raw: RawJson): RawJson {
  // Neither we nor JSON.stringify write any.
  if (!raw.isForeign) return raw;
  const { written } = raw;
  if (typeof written === "string") {
    const hasBreak = written.includes("\n") || written.includes("\r");
    return hasBreak ? RawJson.fromText(written.replaceAll(/[\n\r]/g, " ")) : raw;
  }
  if (!written.some((piece) => piece.includes(0x0a) || piece.includes(0x0d))) return raw;
  return RawJson.fromChecked(
    Buffer.from(raw.bytes).map((byte) => (byte === 0x0a || byte === 0x0d ? 0x20 : byte)),
  );
}
