/** A URI with, for each of its characters, the kinds of value that may hold it. */
export interface Reading {
  readonly uri: string;
  /** Bits of {@link heldBy}, one byte for each character. */
  readonly characters: Uint8Array;
  /** Whether the pairs of a query must come in the order of the template. */
  readonly isOrdered: boolean;
}

/** Which kinds of value may hold a character: that of `{x}`, of `{+x}`, or one in a query. */
export const heldBy = { simple: 1, reserved: 2, query: 4 } as const;

const all = heldBy.simple | heldBy.reserved | heldBy.query;
const unreserved = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
const reserved = ":/?#[]@!$&'()*+,;=";
const triplet = /^%[0-9A-F]{2}$/;

const written: ReadonlyMap<string, number> = new Map([
  ...Array.from(unreserved, (character) => [character, all] as const),
  ...Array.from(reserved, (character) => [character, heldBy.reserved] as const),
]);

const tolerated: ReadonlyMap<string, number> = new Map([
  ["#", heldBy.reserved],
  ["/", heldBy.reserved | heldBy.query],
  ["?", heldBy.reserved | heldBy.query],
  ["&", heldBy.reserved | heldBy.simple],
]);

/** The URI as `expand` would have written it: whatever a value of that kind would have encoded is not part of one. */
export function readAsWritten(uri: string): Reading {
  const characters = new Uint8Array(uri.length);
  for (let at = 0; at < uri.length; at += 1) {
    const character = uri[at] ?? "";
    characters[at] = written.get(character) ?? 0;
    if (character !== "%") continue;
    characters.fill(bitsOfTriplet(uri.slice(at, at + 3)), at, at + 3);
    at += 2;
  }
  return { uri, characters, isOrdered: true };
}

/** The URI as other programs may write it: every character is part of a value unless it ends one. */
export function readAsTolerated(uri: string): Reading {
  const characters = new Uint8Array(uri.length);
  for (let at = 0; at < uri.length; at += 1) characters[at] = tolerated.get(uri[at] ?? "") ?? all;
  return { uri, characters, isOrdered: false };
}

/** `expand` encodes no unreserved character, and no reserved one in a value of `{+x}`. */
function bitsOfTriplet(text: string): number {
  if (!triplet.test(text)) return 0;
  const character = String.fromCharCode(Number.parseInt(text.slice(1), 16));
  if (unreserved.includes(character)) return 0;
  return reserved.includes(character) ? heldBy.simple | heldBy.query : all;
}
