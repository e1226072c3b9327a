import { parseText } from "./value.ts";

/** A string, with the colon behind it if it is a key; a number; or the beginning or end of an object. */
const token = /("[^"\\]*(?:\\.[^"\\]*)*")(\s*:)?|-?[0-9][0-9.eE+-]*|[{}]/g;

/**
 * Rewrites all that a JSON text says, keys and numbers included. `rewrite` is given every key, string and number as text,
 * and gives back as many texts. A number whose text it changes becomes a string. A key that comes a second time in its
 * object is numbered, so that no member takes the place of another.
 *
 * A number is given twice: as it is written, and as JavaScript writes it, which is how others may find it.
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

/** The keys an object has so far, each with how often it was wanted. */
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
