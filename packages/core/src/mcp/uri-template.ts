import { UriTemplateError } from "../errors/index.ts";

/** A parsed URI template (RFC 6570), as resource templates use them. */
export interface UriTemplate {
  /** The names of its variables, in the order they appear. */
  readonly variables: readonly string[];
  /**
   * The URI with these values in place. A variable without a value leaves its expression out.
   *
   * @throws {@link UriTemplateError} when the URI would pass 8 KiB, or a value is not well-formed text.
   */
  expand(values: Readonly<Record<string, string | undefined>>): string;
  /**
   * The values with which the template gives this URI; undefined when no values do.
   *
   * `{x}` and `{+x}` need at least one character; expressions with a prefix of their own may be absent. Values are
   * decoded, so that even one of `{x}` may hold `/` or `..`: check it before using it as a path.
   */
  match(uri: string): Record<string, string> | undefined;
}

const maxUriLength = 8 * 1024;

/**
 * Parses a URI template: literals, `{x}`, `{+x}`, `{#x}`, `{/x}`, `{.x}`, `{?x,y}`, `{&x,y}`.
 *
 * @throws {@link UriTemplateError} when it is malformed, uses a modifier or another operator, names a variable twice, is
 * longer than 1,000 characters or has more than 32 variables.
 * @example
 * const template = parseUriTemplate("repo://{owner}/{name}{/path}{?ref}");
 * template.match("repo://octo/hello?ref=main"); // { owner: "octo", name: "hello", ref: "main" }
 */
export function parseUriTemplate(text: string): UriTemplate {
  const parts = parseParts(text);
  return {
    variables: parts.flatMap(variablesOf),
    expand(values) {
      const uri = expandParts(parts, values, text);
      if (uri.length <= maxUriLength) return uri;
      throw new UriTemplateError(
        "uri_template.too_long",
        text,
        `would give a URI of ${uri.length} characters`,
      );
    },
    match: (uri) => (uri.length > maxUriLength ? undefined : matchParts(parts, uri)),
  };
}

function expandParts(
  parts: readonly Part[],
  values: Readonly<Record<string, string | undefined>>,
  template: string,
): string {
  const valueOf = (name: string): string | undefined =>
    Object.hasOwn(values, name) ? values[name] : undefined;
  let uri = "";
  // What to put before the next value of a list: the expression's own prefix until one is there, then a comma.
  let opener = "";
  for (const part of parts) {
    if (part.kind === "literal") {
      uri += part.text;
    } else if (part.kind === "query") {
      const pairs = part.names.flatMap((name) => {
        const value = valueOf(name);
        return value === undefined ? [] : [`${name}=${encode(value, false, name, template)}`];
      });
      if (pairs.length > 0) uri += part.opener + pairs.join("&");
    } else {
      if (part.prefix !== ",") opener = part.prefix;
      const value = valueOf(part.name);
      if (value === undefined) continue;
      uri += opener + encode(value, part.isReserved, part.name, template);
      opener = ",";
    }
  }
  return uri;
}

function encode(value: string, isReserved: boolean, name: string, template: string): string {
  try {
    return isReserved ? encodeReserved(value) : encodeStrictly(value);
  } catch (cause) {
    throw new UriTemplateError(
      "uri_template.invalid",
      template,
      `the value of "${name}" is not well-formed text`,
      {
        cause,
      },
    );
  }
}

/** Everything but unreserved characters (RFC 3986, section 2.3): encodeURIComponent leaves five more. */
function encodeStrictly(value: string): string {
  return encodeURIComponent(value).replace(/[!'()*]/g, (character) => {
    return `%${character.charCodeAt(0).toString(16).toUpperCase()}`;
  });
}

/**
 * Finds the values with which a template gives a URI, or undefined. Values that `expand` would write back to
 * the same URI come first. Of several ways, each variable takes the shortest text it can, from left to right.
 */
function matchParts(parts: readonly Part[], uri: string): Record<string, string> | undefined {
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

/** Where a part that fits at `start` ends; `start` itself when its value is absent. */
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

/** Reads the values in the text of a part; false if they are not well-formed text. */
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

/** A URI with, for each of its characters, the kinds of value that may hold it. */
interface Reading {
  readonly uri: string;
  /** Bits of {@link heldBy}, one byte for each character. */
  readonly characters: Uint8Array;
  /** Whether the pairs of a query must come in the order of the template. */
  readonly isOrdered: boolean;
}

/** Which kinds of value may hold a character: that of `{x}`, of `{+x}`, or one in a query. */
const heldBy = { simple: 1, reserved: 2, query: 4 } as const;

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
function readAsWritten(uri: string): Reading {
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
function readAsTolerated(uri: string): Reading {
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

/** Text that stands for itself. */
interface LiteralPart {
  readonly kind: "literal";
  readonly text: string;
}

/** One variable's value, behind the character its operator puts before it. */
interface ValuePart {
  readonly kind: "value";
  readonly name: string;
  readonly prefix: "" | "," | "/" | "." | "#";
  /** Whether reserved characters stand as they are, as in `{+path}`. */
  readonly isReserved: boolean;
}

/** The `name=value` pairs of `{?a,b}` or `{&a,b}`, in any order, all optional. */
interface QueryPart {
  readonly kind: "query";
  readonly names: readonly string[];
  readonly opener: "?" | "&";
}

type Part = LiteralPart | ValuePart | QueryPart;

const maxTemplateLength = 1_000;
const maxVariables = 32;
const variableName = /^(?:\w|%[0-9a-fA-F]{2})(?:[.\w]|%[0-9a-fA-F]{2})*$/;

/**
 * Splits a template of RFC 6570 levels 1 to 3, without `{;x}`, into its parts.
 *
 * @throws {@link UriTemplateError}
 */
function parseParts(template: string): readonly Part[] {
  if (template.length > maxTemplateLength) {
    throw new UriTemplateError(
      "uri_template.too_long",
      template,
      `is longer than ${maxTemplateLength} characters`,
    );
  }
  const parts: Part[] = [];
  for (let at = 0; at < template.length;) {
    const open = template.indexOf("{", at);
    const end = open === -1 ? template.length : open;
    if (end > at) parts.push(toLiteral(template, template.slice(at, end)));
    if (open === -1) break;
    const close = template.indexOf("}", open);
    if (close === -1) throw invalid(template, `"{" at ${open} is never closed`);
    parts.push(...parseExpression(template, template.slice(open + 1, close)));
    at = close + 1;
  }
  const merged = mergeQueries(template, parts);
  checkVariables(template, merged);
  return merged;
}

/** The variables of a part, in order. */
function variablesOf(part: Part): readonly string[] {
  switch (part.kind) {
    case "literal":
      return [];
    case "value":
      return [part.name];
    case "query":
      return part.names;
  }
}

function toLiteral(template: string, text: string): LiteralPart {
  if (text.includes("}")) throw invalid(template, `"}" has no "{" before it`);
  return { kind: "literal", text: encodeReserved(text) };
}

/** Encodes characters that a URI cannot have. Reserved characters and escapes stay as they are. */
function encodeReserved(text: string): string {
  return encodeURI(text)
    .replaceAll("%5B", "[")
    .replaceAll("%5D", "]")
    .replace(/%25([0-9a-fA-F]{2})/g, "%$1");
}

function parseExpression(template: string, body: string): readonly Part[] {
  const operator = /^[+#./?&]/.exec(body)?.[0] ?? "";
  const names = body.slice(operator.length).split(",");
  for (const name of names) checkName(template, body, name);
  switch (operator) {
    case "?":
    case "&":
      return [{ kind: "query", names, opener: operator }];
    case "/":
    case ".":
      // `{/a,b}` is `{/a}{/b}`.
      return names.map((name) => ({ kind: "value", name, prefix: operator, isReserved: false }));
    default: {
      const first = operator === "#" ? "#" : "";
      const isReserved = operator !== "";
      return names.map((name, index) => ({
        kind: "value",
        name,
        prefix: index === 0 ? first : ",",
        isReserved,
      }));
    }
  }
}

function checkName(template: string, body: string, name: string): void {
  if (variableName.test(name)) return;
  if (/[*:]/.test(name))
    throw invalid(template, `{${body}} has a modifier, "*" or ":n", which is not supported`);
  if (/^[;=,!@|$]/.test(body)) throw invalid(template, `{${body}} has an operator that is not supported`);
  throw invalid(template, `{${body}} has ${JSON.stringify(name)} where a variable's name should be`);
}

/** `{?a}{&b}` is one query: its pairs may come in any order. A query runs to the fragment or the end. */
function mergeQueries(template: string, parts: readonly Part[]): readonly Part[] {
  const merged: Part[] = [];
  for (const part of parts) {
    const last = merged.at(-1);
    if (last?.kind !== "query") {
      merged.push(part);
    } else if (part.kind === "query" && part.opener === "&") {
      merged[merged.length - 1] = { ...last, names: [...last.names, ...part.names] };
    } else if (
      (part.kind === "value" && part.prefix === "#") ||
      (part.kind === "literal" && part.text[0] === "#")
    ) {
      merged.push(part);
    } else {
      throw invalid(template, `only {&…} or a fragment may follow {${last.opener}${last.names.join(",")}}`);
    }
  }
  return merged;
}

function checkVariables(template: string, parts: readonly Part[]): void {
  const names = parts.flatMap(variablesOf);
  if (names.length > maxVariables) {
    throw new UriTemplateError("uri_template.too_long", template, `has more than ${maxVariables} variables`);
  }
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw invalid(template, `the variable ${JSON.stringify(twice)} is there twice`);
}

function invalid(template: string, message: string): UriTemplateError {
  return new UriTemplateError("uri_template.invalid", template, message);
}
