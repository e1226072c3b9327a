/**
 * JSON documents by the thousand, the same ones for the same seed, spelled as oddly as the grammar allows:
 * random white space, numbers no double can hold, escapes where none are needed, any order of keys.
 */

/** Yields `count` JSON texts of any kind. */
export function* seededJsonTexts(seed: number, count: number): Generator<string> {
  const random = createRandom(seed);
  for (let i = 0; i < count; i++) yield space(random) + writeValue(random, 4) + space(random);
}

/** Yields `count` texts of `tools/call` requests. Each key of the envelope occurs once; the rest is random. */
export function* seededCallTexts(seed: number, count: number): Generator<string> {
  const random = createRandom(seed);
  for (let i = 0; i < count; i++) {
    const params = shuffle(random, [
      [spell(random, "name"), writeString(random)],
      [spell(random, "arguments"), writeObject(random, 3)],
      ...foreignMembers(random),
    ]);
    const envelope = shuffle(random, [
      [spell(random, "jsonrpc"), '"2.0"'],
      [spell(random, "id"), random(2) === 0 ? writeNumber(random) : writeString(random)],
      [spell(random, "method"), '"tools/call"'],
      [spell(random, "params"), joinObject(random, params)],
      ...foreignMembers(random),
    ]);
    yield space(random) + joinObject(random, envelope) + space(random);
  }
}

/** An integer from 0 up to, not including, `below`. */
type Random = (below: number) => number;

type Member = readonly [key: string, value: string];

const NUMBERS = [
  "0",
  "-0",
  "1.0",
  "-1.50",
  "1e400",
  "1E-7",
  "12345678901234567890",
  "9007199254740993",
  "0.1e+2",
];
const LITERALS = ["true", "false", "null"];
const SPACES = [" ", "\n", "\t", "\r\n", "  "];
const PLAIN_PIECES = [
  "a",
  "Z",
  "0",
  "name",
  "é",
  "日本",
  "😀",
  "\u2028",
  "\u007f",
  "/",
  "'",
  ",:",
  "{[",
  "]}",
];
const ESCAPED_PIECES = [
  '\\"',
  "\\\\",
  "\\/",
  "\\b\\f\\n\\r\\t",
  "\\u0041",
  "\\u00e9",
  "\\ud83d\\ude00",
  "\\ud800",
];
const PIECES = [...PLAIN_PIECES, ...ESCAPED_PIECES];

/** mulberry32: 32 bits of state are plenty for test data. */
function createRandom(seed: number): Random {
  let state = seed | 0;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

function writeValue(random: Random, depth: number): string {
  switch (random(depth > 0 ? 6 : 4)) {
    case 0:
      return pick(random, LITERALS);
    case 1:
      return writeNumber(random);
    case 2:
    case 3:
      return writeString(random);
    case 4:
      return writeObject(random, depth - 1);
    default:
      return writeArray(random, depth - 1);
  }
}

function writeNumber(random: Random): string {
  return random(2) === 0 ? pick(random, NUMBERS) : `${random(1_000_000)}`;
}

function writeString(random: Random): string {
  let text = '"';
  for (let i = random(6); i > 0; i--) text += pick(random, PIECES);
  // Now and then one that is long enough for the word loop, ending at any alignment.
  if (random(32) === 0) text += pick(random, PLAIN_PIECES).repeat(random(200));
  return `${text}"`;
}

function writeArray(random: Random, depth: number): string {
  const elements: string[] = [];
  for (let i = random(4); i > 0; i--)
    elements.push(space(random) + writeValue(random, depth) + space(random));
  return `[${elements.length === 0 ? space(random) : elements.join(",")}]`;
}

function writeObject(random: Random, depth: number): string {
  const members: Member[] = [];
  for (let i = random(4); i > 0; i--) members.push([writeString(random), writeValue(random, depth)]);
  return joinObject(random, members);
}

function joinObject(random: Random, members: readonly Member[]): string {
  if (members.length === 0) return `{${space(random)}}`;
  const written = members.map(
    ([key, value]) => `${space(random)}${key}${space(random)}:${space(random)}${value}${space(random)}`,
  );
  return `{${written.join(",")}}`;
}

function foreignMembers(random: Random): Member[] {
  const members: Member[] = [];
  for (let i = random(3); i > 0; i--) members.push([`"x-${random(1000)}"`, writeValue(random, 2)]);
  return members;
}

/** The key between quotes, sometimes with a character escaped that need not be. */
function spell(random: Random, key: string): string {
  if (random(4) !== 0) return `"${key}"`;
  const at = random(key.length);
  const code = key.charCodeAt(at).toString(16).padStart(4, "0");
  return `"${key.slice(0, at)}\\u${code}${key.slice(at + 1)}"`;
}

function shuffle(random: Random, members: Member[]): Member[] {
  for (let i = members.length - 1; i > 0; i--) {
    const j = random(i + 1);
    [members[i], members[j]] = [members[j] as Member, members[i] as Member];
  }
  return members;
}

function space(random: Random): string {
  return random(4) === 0 ? pick(random, SPACES) : "";
}

function pick(random: Random, choices: readonly string[]): string {
  return choices[random(choices.length)] ?? "";
}
