/**
 * Every key of an options type. The compiler refuses a list that misses one.
 *
 * @example
 * const optionKeys: KeysOf<ServeOptions> = keys("graceMs lingerMs");
 */
export type KeysOf<Options> = { readonly [Key in keyof Required<Options>]: true };

type WordsOf<Text extends string> = Text extends `${infer First} ${infer Rest}`
  ? First | WordsOf<Rest>
  : Text;

/** Keys, written with one space between them. */
export function keys<const Text extends string>(text: Text): { readonly [Key in WordsOf<Text>]: true } {
  const entries = text.split(" ").map((key) => [key, true]);
  return Object.fromEntries(entries) as { [Key in WordsOf<Text>]: true };
}

/**
 * Throws a `TypeError` for a key that the options do not have, which is most often a misspelt one. `what` names the
 * function, and `meant` says what to write for keys that people bring from elsewhere.
 *
 * @example
 * assertKnownKeys("createServer", options, serverOptionKeys);
 * // TypeError: createServer has no option "pagesize"; did you mean "pageSize"?
 */
export function assertKnownKeys(
  what: string,
  options: object,
  known: { readonly [key: string]: true },
  meant: { readonly [key: string]: string } = {},
): void {
  if (typeof options !== "object" || options === null)
    throw new TypeError(`${what}: the options must be an object, but are ${String(options)}`);
  const unknown = Object.keys(options).find((key) => !Object.hasOwn(known, key));
  if (unknown === undefined) return;
  const keys = Object.keys(known);
  const likely = Object.hasOwn(meant, unknown) ? meant[unknown] : nearest(unknown, keys);
  const hint =
    likely === undefined
      ? `; its options are ${keys.join(", ")}`
      : `; did you mean ${JSON.stringify(likely)}?`;
  throw new TypeError(`${what} has no option ${JSON.stringify(unknown)}${hint}`);
}

/** Longer words are not compared: a stranger may send a word of millions of letters. */
const maxWordLength = 256;

/** The candidate a person most likely meant, or undefined when none is close. */
export function nearest(word: string, candidates: readonly string[]): string | undefined {
  if (word.length > maxWordLength) return undefined;
  const ranked = candidates
    .filter(({ length }) => length <= 2 * maxWordLength)
    .map((candidate) => ({ candidate, distance: editDistance(word.toLowerCase(), candidate.toLowerCase()) }))
    .toSorted((a, b) => a.distance - b.distance);
  const best = ranked[0];
  if (best === undefined) return undefined;
  // A word with every letter changed is another word: "c" is not a misspelt "a".
  const isClose = best.distance <= Math.max(1, Math.floor(word.length / 3));
  return isClose && best.distance < Math.max(word.length, best.candidate.length) ? best.candidate : undefined;
}

/** `did you mean …?` with the candidate a person most likely meant, or else another text. */
export function suggest(word: string, candidates: readonly string[], otherwise: string): string {
  const meant = nearest(word, candidates);
  return meant === undefined ? otherwise : `did you mean ${meant}?`;
}

/** How many letters must be added, dropped, changed or swapped with their neighbour to get from one word to another. */
function editDistance(from: string, to: string): number {
  let beforePrevious: number[] = [];
  let previous = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let row = 1; row <= from.length; row++) {
    const current = [row];
    for (let column = 1; column <= to.length; column++) {
      const isSame = from[row - 1] === to[column - 1];
      const isSwapped =
        row > 1 && column > 1 && from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1];
      current[column] = Math.min(
        (previous[column] ?? 0) + 1,
        (current[column - 1] ?? 0) + 1,
        (previous[column - 1] ?? 0) + (isSame ? 0 : 1),
        isSwapped ? (beforePrevious[column - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY,
      );
    }
    beforePrevious = previous;
    previous = current;
  }
  return previous[to.length] ?? 0;
}

/** The fields that have a value: an optional property is left out, not set to undefined. */
export function defined<const Fields extends object>(fields: Fields): Defined<Fields> {
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== undefined),
  ) as Defined<Fields>;
}

/** Fields that may be undefined become optional, the others stay. */
type Defined<Fields> = {
  [Key in keyof Fields as undefined extends Fields[Key] ? never : Key]: Fields[Key];
} & {
  [Key in keyof Fields as undefined extends Fields[Key] ? Key : never]?: Exclude<Fields[Key], undefined>;
};
