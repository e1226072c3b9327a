import { parseText } from "./value.ts";

/**
 * Rewrites the strings of a JSON text that was checked before: each value that is a string is given decoded, whatever
 * escapes it is written with, and is written anew if something else comes back. So is each key with `rewriteKey`; keys that
 * become equal are numbered over the whole text. Numbers, white space and the strings that stay are not touched; if all
 * stay, the very same text is returned.
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
