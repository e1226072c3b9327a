import { stemOf } from "./stem.ts";

/** Words that say nothing of what a tool does. */
const stopWords = new Set(
  (
    "a about after all also an and any are as at be because been before being but by can could did do does for from had has " +
    "have he her here him his how i if in into is it its just let like ll may me more most must my no not now of on once only or " +
    "our out please re s she should so some someone something such t than that the their them then there these they this to too " +
    "up us use used using ve via want was we what when where which while who why will with would you your"
  ).split(" "),
);

/** Letters and digits in one piece, and the parts of it that case and digits tell apart. */
const piece = /[\p{L}\p{N}]+/gu;
const part = /[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+|[^A-Za-z0-9]+/g;

/**
 * The words of a text in lower case, without stop words. A word such as `GitHub` or `createIssue` is there whole and in its parts:
 * people write both.
 */
export function wordsOf(text: string): readonly string[] {
  const words: string[] = [];
  const add = (word: string): void => {
    if (!stopWords.has(word)) words.push(word);
  };
  for (const [whole] of text.matchAll(piece)) {
    const lower = whole.toLowerCase();
    add(lower);
    if (lower === whole) continue;
    const parts = whole.match(part) ?? [];
    if (parts.length > 1) for (const each of parts) add(each.toLowerCase());
  }
  return words;
}

/** The terms of a text: its words as stems. */
export function termsOf(text: string): readonly string[] {
  return wordsOf(text).map(stemOf);
}
