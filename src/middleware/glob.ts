/** Says whether a name fits. */
export type NameTest = (name: string) => boolean;

/**
 * Which names may pass: those that fit one of `allow` and none of `deny`. Without `allow` every name may; with an empty
 * one none does, because a list of what is allowed that came out empty must not mean everything.
 *
 * @example
 * const mayPass = createGlobs(["github__*"], ["*delete*"]);
 */
export function createGlobs(allow: readonly string[] | undefined, deny: readonly string[] = []): NameTest {
  const allowed = allow?.map(createGlob);
  const denied = deny.map(createGlob);
  return (name) => {
    const isAllowed = allowed === undefined || allowed.some((fits) => fits(name));
    return isAllowed && !denied.some((fits) => fits(name));
  };
}

/**
 * A test for whole names, case-sensitive: `*` stands for any run of characters, `?` for one (one UTF-16 unit), and
 * everything else for itself. There is nothing to backtrack over, however the glob is made: what stands between two
 * stars is looked for once, from left to right, 32 characters of it at a time.
 */
export function createGlob(glob: string): NameTest {
  const [first = "", ...rest] = glob.split("*");
  const last = rest.pop();
  if (last === undefined) return (name) => name.length === first.length && fitsAt(first, name, 0);
  const middle = rest.filter((piece) => piece !== "").map(createFinder);
  return (name) => {
    const end = name.length - last.length;
    if (end < first.length || !fitsAt(first, name, 0) || !fitsAt(last, name, end)) return false;
    let at = first.length;
    for (const find of middle) {
      // Leftmost is best: it leaves the most for the pieces to come.
      at = find(name, at, end);
      if (at === -1) return false;
    }
    return true;
  };
}

const anyCharacter = 0x3f; // ?

function fitsAt(piece: string, name: string, at: number): boolean {
  for (let i = 0; i < piece.length; i++) {
    const code = piece.charCodeAt(i);
    if (code !== anyCharacter && code !== name.charCodeAt(at + i)) return false;
  }
  return true;
}

/** Finds a piece in [from, end) of a name and returns the position after it, or -1. */
type Finder = (name: string, from: number, end: number) => number;

/**
 * The shift-and algorithm: bit i of the state says that the characters read last fit the piece up to its place i. So
 * every place is compared at once, by a word of 32, and a `?` is a bit that every character has.
 */
function createFinder(piece: string): Finder {
  const words = Math.ceil(piece.length / 32);
  const places = placesOf(piece, words);
  const unknown = places.get(anyCharacter) ?? new Int32Array(words);
  const lastWord = words - 1;
  const lastBit = 1 << ((piece.length - 1) & 31);
  return (name, from, end) => {
    /** From a start further on, the piece would not end in time. */
    const lastStart = end - from - piece.length;
    if (lastStart < 0) return -1;
    const state = new Int32Array(words);
    for (let read = 0; from + read < end; read++) {
      const fitting = places.get(name.charCodeAt(from + read)) ?? unknown;
      // Only places that a start between the first and the last can have reached by now.
      const low = Math.max(0, read - lastStart) >> 5;
      const high = Math.min(lastWord, read >> 5);
      let carried = low === 0 ? 1 : (state[low - 1] as number) >>> 31;
      for (let word = low; word <= high; word++) {
        const before = state[word] as number;
        state[word] = ((before << 1) | carried) & (fitting[word] as number);
        carried = before >>> 31;
      }
      if (high === lastWord && ((state[lastWord] as number) & lastBit) !== 0) return from + read + 1;
    }
    return -1;
  };
}

/** For each character of a piece, the places it fits at, as bits. */
function placesOf(piece: string, words: number): ReadonlyMap<number, Int32Array> {
  const places = new Map<number, Int32Array>();
  const wild = new Int32Array(words);
  for (let i = 0; i < piece.length; i++) {
    if (piece.charCodeAt(i) === anyCharacter) setBit(wild, i);
  }
  places.set(anyCharacter, wild);
  for (let i = 0; i < piece.length; i++) {
    const code = piece.charCodeAt(i);
    if (code === anyCharacter) continue;
    const fitting = places.get(code) ?? wild.slice();
    setBit(fitting, i);
    places.set(code, fitting);
  }
  return places;
}

function setBit(words: Int32Array, at: number): void {
  words[at >> 5] = (words[at >> 5] as number) | (1 << (at & 31));
}
