/** One step of the stemmer: an ending, the ending that takes its place, and what must be true of the stem before it. */
type EndingRule = readonly [ending: string, replacement: string];

const consonant = "(?:[^aeiou]|(?<=^|[aeiou])y)";
const vowel = "(?:[aeiou]|(?<=[^aeiou])y)";
/** Whether there is a vowel and a consonant after it: the measure of the paper is above 0. */
const isLong = new RegExp(`^${consonant}*${vowel}+${consonant}`);
const isLonger = new RegExp(`^${consonant}*(?:${vowel}+${consonant}+){2}`);
const hasVowel = new RegExp(vowel);
const isDoubled = /([^aeiouylsz])\1$/;
/** Ends like `hop` or `fil`: the `e` that was cut off belongs to it. */
const isShort = new RegExp(`^${consonant}+${vowel}[^aeiouwxy]$`);

const second: readonly EndingRule[] = [
  ["ational", "ate"],
  ["tional", "tion"],
  ["enci", "ence"],
  ["anci", "ance"],
  ["izer", "ize"],
  ["abli", "able"],
  ["alli", "al"],
  ["entli", "ent"],
  ["eli", "e"],
  ["ousli", "ous"],
  ["ization", "ize"],
  ["ation", "ate"],
  ["ator", "ate"],
  ["alism", "al"],
  ["iveness", "ive"],
  ["fulness", "ful"],
  ["ousness", "ous"],
  ["aliti", "al"],
  ["iviti", "ive"],
  ["biliti", "ble"],
];
const third: readonly EndingRule[] = [
  ["icate", "ic"],
  ["ative", ""],
  ["alize", "al"],
  ["iciti", "ic"],
  ["ical", "ic"],
  ["ful", ""],
  ["ness", ""],
];
const fourth =
  /^(.+?)(al|ance|ence|er|ic|able|ible|ant|ement|ment|ent|(?<=[st])ion|ou|ism|ate|iti|ous|ive|ize)$/;

/** Longer than any word that has a stem; what is longer is left as it is. */
const maxLength = 40;
const stems = new Map<string, string>();
const maxStems = 20_000;

/**
 * The stem of an English word in lower case, after Porter (An algorithm for suffix stripping, 1980): `creating`, `created` and
 * `creates` have the same one. The last ones are kept, because definitions repeat their words.
 */
export function stemOf(word: string): string {
  if (word.length < 3 || word.length > maxLength || !/^[a-z]+$/.test(word)) return word;
  const known = stems.get(word);
  if (known !== undefined) return known;
  if (stems.size >= maxStems) stems.clear();
  const stem = makeStem(word);
  stems.set(word, stem);
  return stem;
}

function makeStem(word: string): string {
  let stem = word.replace(/(ss|i)es$/, "$1").replace(/([^s])s$/, "$1");
  if (stem.endsWith("eed")) {
    if (isLong.test(stem.slice(0, -3))) stem = stem.slice(0, -1);
  } else {
    const cut = stem.replace(/(?:ed|ing)$/, "");
    if (cut !== stem && hasVowel.test(cut)) stem = mend(cut);
  }
  if (stem.endsWith("y") && hasVowel.test(stem.slice(0, -1))) stem = `${stem.slice(0, -1)}i`;
  stem = replaceEnding(replaceEnding(stem, second), third);
  const [, before = "", ending] = fourth.exec(stem) ?? [];
  if (ending !== undefined && isLonger.test(before)) stem = before;
  if (stem.endsWith("e")) {
    const before = stem.slice(0, -1);
    if (isLonger.test(before) || (isLong.test(before) && !isShort.test(before))) stem = before;
  }
  return isLonger.test(stem) && stem.endsWith("ll") ? stem.slice(0, -1) : stem;
}

/** What is left of a word without `ed` or `ing`, as it would be written. */
function mend(cut: string): string {
  if (/(?:at|bl|iz)$/.test(cut)) return `${cut}e`;
  if (isDoubled.test(cut)) return cut.slice(0, -1);
  return isShort.test(cut) ? `${cut}e` : cut;
}

function replaceEnding(word: string, rules: readonly EndingRule[]): string {
  for (const [ending, replacement] of rules) {
    if (!word.endsWith(ending)) continue;
    const before = word.slice(0, -ending.length);
    return isLong.test(before) ? before + replacement : word;
  }
  return word;
}
