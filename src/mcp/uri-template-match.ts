import type { Part, QueryPart, ValuePart } from "./uri-template-syntax.ts";

/**
 * Finds the values that make a template a URI, or undefined. Of several ways, each variable takes the shortest text it
 * can, from left to right.
 *
 * It works backwards, noting for every part the places from which the rest of the template fits the rest of the URI. So
 * it never tries a way twice: its time is the number of parts times the length of the URI, whatever they are. A regular
 * expression made from the template would be exponential (CVE-2026-0621).
 */
export function matchParts(parts: readonly Part[], uri: string): Record<string, string> | undefined {
  // fits[i] has a 1 wherever parts[i] and all after it fit the URI from there to its end.
  const fits: Uint8Array[] = Array.from({ length: parts.length + 1 }, () => new Uint8Array(uri.length + 1));
  row(fits, parts.length)[uri.length] = 1;
  for (let index = parts.length - 1; index >= 0; index -= 1) {
    const part = parts[index];
    if (part !== undefined) fillRow(part, uri, row(fits, index), row(fits, index + 1));
  }
  if (row(fits, 0)[0] !== 1) return undefined;

  // Names come from the template's author: without a prototype, `__proto__` is one like any other.
  const values = Object.create(null) as Record<string, string>;
  let at = 0;
  for (const [index, part] of parts.entries()) {
    const end = takePart(part, uri, at, row(fits, index + 1), values);
    if (end === undefined) return undefined;
    at = end;
  }
  return values;
}

function row(fits: readonly Uint8Array[], index: number): Uint8Array {
  const found = fits[index];
  if (found === undefined) throw new RangeError(`no part ${index}`);
  return found;
}

function fillRow(part: Part, uri: string, here: Uint8Array, next: Uint8Array): void {
  switch (part.kind) {
    case "literal":
      for (let at = uri.length - part.text.length; at >= 0; at -= 1) {
        if (next[at + part.text.length] === 1 && uri.startsWith(part.text, at)) here[at] = 1;
      }
      return;
    case "value":
      return fillValue(part, uri, here, next);
    case "query":
      return fillQuery(part, uri, here, next);
  }
}

function fillValue(part: ValuePart, uri: string, here: Uint8Array, next: Uint8Array): void {
  // Whether a value that starts at `at` can end at some place where the rest fits; and the same for `at + 1`.
  let canEnd = false;
  for (let at = uri.length; at >= 0; at -= 1) {
    const canEndLater: boolean = canEnd && isValueCharacter(part, uri, at);
    canEnd = canEndLater || (next[at] === 1 && isBoundary(uri, at));
    if (part.prefix === "") {
      if (canEndLater) here[at] = 1;
    } else {
      if (next[at] === 1) here[at] = 1;
      if (at > 0 && canEnd && uri[at - 1] === part.prefix) here[at - 1] = 1;
    }
  }
}

function fillQuery(part: QueryPart, uri: string, here: Uint8Array, next: Uint8Array): void {
  const hash = uri.indexOf("#");
  const end = hash === -1 ? uri.length : hash;
  // Whether the text from the last "&" seen to the end is pairs with names of ours.
  let arePairs = next[end] === 1;
  for (let at = uri.length; at >= 0; at -= 1) {
    if (next[at] === 1) here[at] = 1;
    const isStart = at < end && (uri[at] === part.opener || uri[at] === "&");
    if (!isStart) continue;
    const isPair = arePairs && part.names.some((name) => uri.startsWith(`${name}=`, at + 1));
    if (uri[at] === part.opener && isPair) here[at] = 1;
    if (uri[at] === "&") arePairs = isPair;
  }
}

/** Reads one part's values at a place where it is known to fit. Returns where it ends, or undefined if they are no text. */
function takePart(
  part: Part,
  uri: string,
  start: number,
  next: Uint8Array,
  values: Record<string, string>,
): number | undefined {
  if (part.kind === "literal") return start + part.text.length;
  const end = part.kind === "value" ? endOfValue(part, uri, start, next) : endOfQuery(part, uri, start, next);
  if (end === undefined) return start;
  const text = uri.slice(start, end);
  const isRead = part.kind === "value" ? readValue(part, text, values) : readQuery(text, values);
  return isRead ? end : undefined;
}

/** Where the shortest value ends that lets the rest fit, or undefined when the value is absent. */
function endOfValue(part: ValuePart, uri: string, start: number, next: Uint8Array): number | undefined {
  if (part.prefix !== "" && uri[start] !== part.prefix) return undefined;
  if (part.prefix === "" && !isValueCharacter(part, uri, start)) return undefined;
  for (let at = start + 1; at <= uri.length; at += 1) {
    if (next[at] === 1 && isBoundary(uri, at)) return at;
    if (!isValueCharacter(part, uri, at)) return undefined;
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

function isValueCharacter(part: ValuePart, uri: string, at: number): boolean {
  const character = uri[at];
  if (character === undefined) return false;
  return part.isReserved || (character !== "/" && character !== "?" && character !== "#");
}

/** Whether a value may end here: not inside `%C3`, and not between the bytes of one character, as in `%C3|%A9`. */
function isBoundary(uri: string, at: number): boolean {
  if (uri[at - 1] === "%" || uri[at - 2] === "%") return false;
  return !(uri[at] === "%" && /[89abAB]/.test(uri[at + 1] ?? ""));
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
