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
