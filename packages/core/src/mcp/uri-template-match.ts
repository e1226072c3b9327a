import { heldBy, readAsTolerated, readAsWritten, type Reading } from "./uri-template-reading.ts";
import type { Part, QueryPart, ValuePart } from "./uri-template-syntax.ts";

/**
 * Finds the values that make a template a URI, or undefined. Values that `expand` would write back to the same URI come
 * first. Of several ways, each variable takes the shortest text it can, from left to right.
 */
export function matchParts(parts: readonly Part[], uri: string): Record<string, string> | undefined {
  return matchReading(parts, readAsWritten(uri)) ?? matchReading(parts, readAsTolerated(uri));
}

/**
 * Works backwards, noting for every part the places from which the rest of the template fits the rest of the URI. So
 * it never tries a way twice: its time is the number of parts times the length of the URI, whatever they are. A regular
 * expression made from the template would be exponential (CVE-2026-0621).
 */
function matchReading(parts: readonly Part[], reading: Reading): Record<string, string> | undefined {
  const { uri } = reading;
  // fits[i] has a 1 wherever parts[i] and all after it fit the URI from there to its end.
  const fits: Uint8Array[] = Array.from({ length: parts.length + 1 }, () => new Uint8Array(uri.length + 1));
  row(fits, parts.length)[uri.length] = 1;
  for (let index = parts.length - 1; index >= 0; index -= 1) {
    const part = parts[index];
    if (part !== undefined) fillRow(part, reading, row(fits, index), row(fits, index + 1));
  }
  if (row(fits, 0)[0] !== 1) return undefined;

  // Names come from the template's author: without a prototype, `__proto__` is one like any other.
  const values = Object.create(null) as Record<string, string>;
  let at = 0;
  for (const [index, part] of parts.entries()) {
    const end = endOfPart(part, reading, at, row(fits, index + 1));
    if (!readPart(part, uri.slice(at, end), values)) return undefined;
    at = end;
  }
  return values;
}

function row(fits: readonly Uint8Array[], index: number): Uint8Array {
  const found = fits[index];
  if (found === undefined) throw new RangeError(`no part ${index}`);
  return found;
}

function fillRow(part: Part, reading: Reading, here: Uint8Array, next: Uint8Array): void {
  switch (part.kind) {
    case "literal":
      return fillLiteral(part.text, reading.uri, here, next);
    case "value":
      return fillValue(part, reading, here, next);
    case "query":
      return fillQuery(part, reading, here, next);
  }
}

function fillLiteral(text: string, uri: string, here: Uint8Array, next: Uint8Array): void {
  for (let at = uri.length - text.length; at >= 0; at -= 1) {
    if (next[at + text.length] === 1 && uri.startsWith(text, at)) here[at] = 1;
  }
}

function fillValue(part: ValuePart, reading: Reading, here: Uint8Array, next: Uint8Array): void {
  const { uri } = reading;
  // Whether a value that starts at `at` can end at some place where the rest fits; and the same for `at + 1`.
  let canEnd = false;
  for (let at = uri.length; at >= 0; at -= 1) {
    const canEndLater: boolean = canEnd && isValueCharacter(part, reading, at);
    canEnd = canEndLater || (next[at] === 1 && isBoundary(uri, at));
    if (part.prefix === "") {
      if (canEndLater) here[at] = 1;
    } else {
      if (next[at] === 1) here[at] = 1;
      if (at > 0 && canEnd && uri[at - 1] === part.prefix) here[at - 1] = 1;
    }
  }
}

/** What follows a query is a fragment or nothing, so its last value ends at a "#" or at the end of the URI. */
function fillQuery(part: QueryPart, reading: Reading, here: Uint8Array, next: Uint8Array): void {
  const { uri, isOrdered } = reading;
  const ends = endsOfQueryValues(reading);
  // For a separator from which only pairs follow: the place in `names` of the first of them.
  const firsts = new Map<number, number>();
  for (let at = uri.length; at >= 0; at -= 1) {
    if (next[at] === 1) here[at] = 1;
    if (uri[at] !== part.opener && uri[at] !== "&") continue;
    const first = part.names.findIndex((name) => uri.startsWith(`${name}=`, at + 1));
    const end = ends[at + 2 + (part.names[first]?.length ?? 0)] ?? 0;
    const isLast = (end === uri.length || uri[end] === "#") && next[end] === 1;
    const following = isLast ? part.names.length : firsts.get(end);
    if (first === -1 || following === undefined || (isOrdered && following <= first)) continue;
    if (uri[at] === "&") firsts.set(at, first);
    if (uri[at] === part.opener) here[at] = 1;
  }
}

/** For each place, where a query's value that starts there has to end. */
function endsOfQueryValues({ characters }: Reading): Uint16Array {
  const ends = new Uint16Array(characters.length + 1).fill(characters.length);
  for (let at = characters.length - 1; at >= 0; at -= 1) {
    const isHeld = ((characters[at] ?? 0) & heldBy.query) !== 0;
    ends[at] = isHeld ? (ends[at + 1] ?? at) : at;
  }
  return ends;
}

/** Where a part ends that is known to fit here; here, when its value is absent. */
function endOfPart(part: Part, reading: Reading, start: number, next: Uint8Array): number {
  switch (part.kind) {
    case "literal":
      return start + part.text.length;
    case "value":
      return endOfValue(part, reading, start, next) ?? start;
    case "query":
      return endOfQuery(part, reading.uri, start, next) ?? start;
  }
}

/** Reads the values in the text of a part; false if they are no text. */
function readPart(part: Part, text: string, values: Record<string, string>): boolean {
  if (part.kind === "literal" || text === "") return true;
  return part.kind === "value" ? readValue(part, text, values) : readQuery(text, values);
}

/** Where the shortest value ends that lets the rest fit, or undefined when the value is absent. */
function endOfValue(part: ValuePart, reading: Reading, start: number, next: Uint8Array): number | undefined {
  const { uri } = reading;
  if (part.prefix !== "" && uri[start] !== part.prefix) return undefined;
  if (part.prefix === "" && !isValueCharacter(part, reading, start)) return undefined;
  for (let at = start + 1; at <= uri.length; at += 1) {
    if (next[at] === 1 && isBoundary(uri, at)) return at;
    if (!isValueCharacter(part, reading, at)) return undefined;
  }
  return undefined;
}

function endOfQuery(part: QueryPart, uri: string, start: number, next: Uint8Array): number | undefined {
  if (uri[start] !== part.opener) return undefined;
  const hash = uri.indexOf("#", start);
  const end = hash === -1 ? uri.length : hash;
  return next[end] === 1 ? end : undefined;
}

function readValue(part: ValuePart, text: string, values: Record<string, string>): boolean {
  const value = decode(text.slice(part.prefix.length));
  if (value === undefined) return false;
  values[part.name] = value;
  return true;
}

function readQuery(text: string, values: Record<string, string>): boolean {
  for (const pair of text.slice(1).split("&")) {
    const equals = pair.indexOf("=");
    const name = pair.slice(0, equals);
    const value = decode(pair.slice(equals + 1));
    // A name that comes twice is refused: two readers of the same URI could each take another.
    if (value === undefined || name in values) return false;
    values[name] = value;
  }
  return true;
}

function isValueCharacter(part: ValuePart, { characters }: Reading, at: number): boolean {
  return ((characters[at] ?? 0) & (part.isReserved ? heldBy.reserved : heldBy.simple)) !== 0;
}

/** Whether a value may end here: not inside `%C3`, and not between the bytes of one character, as in `%C3|%A9`. */
function isBoundary(uri: string, at: number): boolean {
  if (uri[at - 1] === "%" || uri[at - 2] === "%") return false;
  return !(uri[at] === "%" && "89abAB".includes(uri[at + 1] ?? " "));
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
