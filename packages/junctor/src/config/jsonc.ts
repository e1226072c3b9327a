import { ConfigError } from "@junctor/core/errors";
import type { Findings, Place } from "./findings.ts";
import { joinPath } from "./value-readers.ts";

const maxDepth = 64;
const blank = /(?:[ \t\r\n]+|\/\/[^\r\n]*|\/\*[^]*?\*\/)*/y;
const number = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const word = /true|false|null/y;
// A string up to where it ends or goes wrong. Every character is matched in one way only, so that the time is linear in the length.
// oxlint-disable-next-line no-control-regex
const sound = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[\dA-Fa-f]{4}))*/y;
const escape = /^\\./;

/** A value and where it stands: `start` is its first character, `end` the place after its last. */
export interface JsonNode {
  readonly value: unknown;
  readonly start: number;
  readonly end: number;
  /** Of an object only. */
  readonly members?: readonly JsonMember[];
}

/** One member of an object. */
export interface JsonMember {
  readonly key: string;
  /** Where its name begins. */
  readonly start: number;
  readonly node: JsonNode;
  /** Where the comma after it is. */
  readonly comma: number | undefined;
}

/** Where a parse has got to. */
interface Cursor {
  readonly text: string;
  at: number;
  readonly findings: Findings;
}

/**
 * Parses JSON as people write it into config files: with comments, trailing commas and a byte order mark. A key that is
 * written twice is an issue, because programs disagree on which of the two counts. Throws a `ConfigError` with the line
 * and column of a syntax error. Returns undefined for an empty text.
 */
export function parseJsonc(text: string, findings: Findings): unknown {
  return parseJsoncNode(text, findings)?.value;
}

/** Like {@link parseJsonc}, with the places of values, for edits that leave everything else as it is. */
export function parseJsoncNode(text: string, findings: Findings): JsonNode | undefined {
  const cursor: Cursor = { text, at: text.startsWith("\uFEFF") ? 1 : 0, findings };
  skipBlank(cursor);
  if (cursor.at === text.length) return undefined;
  const node = parseValue(cursor, "", 0);
  if (cursor.at < text.length) throw unexpected(cursor, "the end of the file");
  return node;
}

/** A value with the blanks around it. */
function parseValue(cursor: Cursor, path: string, depth: number): JsonNode {
  skipBlank(cursor);
  if (depth > maxDepth) throw failed(cursor, `is nested more than ${maxDepth} deep: nest less deeply`);
  const start = cursor.at;
  const bare = parseBare(cursor, path, depth);
  const end = cursor.at;
  skipBlank(cursor);
  return { ...bare, start, end };
}

type Bare = Pick<JsonNode, "value" | "members">;

function parseBare(cursor: Cursor, path: string, depth: number): Bare {
  switch (cursor.text[cursor.at]) {
    case "{":
      return parseObject(cursor, path, depth);
    case "[":
      return { value: parseArray(cursor, path, depth) };
    case '"':
      return { value: parseString(cursor) };
    default: {
      const token = match(cursor, number) ?? match(cursor, word);
      if (token === undefined) throw unexpected(cursor, "a value");
      return { value: JSON.parse(token) };
    }
  }
}

function parseObject(cursor: Cursor, path: string, depth: number): Bare {
  const written = new Map<string, number>();
  const members: JsonMember[] = [];
  parseItems(cursor, "}", () => {
    if (cursor.text[cursor.at] !== '"') throw unexpected(cursor, 'a name in double quotes or "}"');
    const start = cursor.at;
    const key = parseString(cursor);
    const at = joinPath(path, key);
    cursor.findings.locate(at, () => position(cursor.text, start));
    const earlier = written.get(key);
    if (earlier === undefined) written.set(key, start);
    else refuseTwice(cursor, at, earlier, start);
    skipBlank(cursor);
    if (!take(cursor, ":")) throw unexpected(cursor, '":"');
    const node = parseValue(cursor, at, depth + 1);
    members.push({ key, start, node, comma: cursor.text[cursor.at] === "," ? cursor.at : undefined });
  });
  // Unlike assignment, this makes `__proto__` a key like any other.
  return { value: Object.fromEntries(members.map(({ key, node }) => [key, node.value])), members };
}

function refuseTwice({ text, findings }: Cursor, path: string, first: number, second: number): void {
  const [one, two] = [position(text, first).line, position(text, second).line];
  const lines = one === two ? `line ${one}` : `lines ${one} and ${two}`;
  findings.issue(path, `is written twice, in ${lines}: keep one of them`);
}

function parseArray(cursor: Cursor, path: string, depth: number): unknown {
  const items: unknown[] = [];
  parseItems(cursor, "]", () => {
    const at = joinPath(path, items.length);
    const start = cursor.at;
    cursor.findings.locate(at, () => position(cursor.text, start));
    items.push(parseValue(cursor, at, depth + 1).value);
  });
  return items;
}

/** What stands between two brackets, separated by commas, with an optional one at the end. */
function parseItems(cursor: Cursor, end: "}" | "]", parseItem: () => void): void {
  cursor.at++;
  skipBlank(cursor);
  while (!take(cursor, end)) {
    parseItem();
    if (!take(cursor, ",") && cursor.text[cursor.at] !== end) throw unexpected(cursor, `"," or "${end}"`);
    skipBlank(cursor);
  }
}

function parseString(cursor: Cursor): string {
  const opening = cursor.at;
  match(cursor, sound);
  if (take(cursor, '"')) return JSON.parse(cursor.text.slice(opening, cursor.at)) as string;
  const [wrong] = cursor.text.slice(cursor.at, cursor.at + 2).match(escape) ?? [];
  // Such as a path of Windows: "C:\Users".
  if (wrong !== undefined)
    throw failed(cursor, `${wrong} means nothing in a string: write a backslash as \\\\`);
  if (cursor.text[cursor.at] === "\t")
    throw failed(cursor, "a tab cannot stand in a string: write it as \\t");
  cursor.at = opening;
  throw failed(cursor, 'this string has no end in its line: write a " there');
}

function skipBlank(cursor: Cursor): void {
  match(cursor, blank);
  if (cursor.text.startsWith("/*", cursor.at))
    throw failed(cursor, "this comment has no end: write */ there");
}

/** Takes what the sticky pattern matches here. */
function match(cursor: Cursor, pattern: RegExp): string | undefined {
  pattern.lastIndex = cursor.at;
  const found = pattern.exec(cursor.text)?.[0];
  if (found !== undefined) cursor.at += found.length;
  return found;
}

function take(cursor: Cursor, character: string): boolean {
  if (cursor.text[cursor.at] !== character) return false;
  cursor.at++;
  return true;
}

function unexpected(cursor: Cursor, wanted: string): ConfigError {
  return failed(cursor, `expected ${wanted}, found ${describeFound(cursor.text, cursor.at)}`);
}

function failed(cursor: Cursor, message: string): ConfigError {
  const { source, issues } = cursor.findings;
  return new ConfigError(source.file, [
    ...issues,
    { path: "", at: position(cursor.text, cursor.at), message },
  ]);
}

function position(text: string, at: number): Place {
  const lines = text.slice(text.startsWith("\uFEFF") ? 1 : 0, at).split(/\r\n|\r|\n/);
  return { line: lines.length, column: (lines.at(-1)?.length ?? 0) + 1 };
}

/** What stands at a place where something else was expected, and what that probably means. */
function describeFound(text: string, at: number): string {
  const character = text[at];
  if (character === undefined) return "the end of the file: is a bracket not closed?";
  // A longer word, or one with digits, may be a key without its quotes.
  const [word] = /[A-Za-z]{1,20}(?!\w)/y.exec(text.slice(at, at + 22)) ?? [];
  if (word !== undefined) return word + adviceOnWord(word);
  if (character === '"') return "a string: is a comma missing before it?";
  if ("'‘’“”".includes(character)) return `${character} (write plain double quotes: ")`;
  if (character === "#") return "# (a comment begins with //)";
  return /[!-~]/.test(character) ? JSON.stringify(character) : toCodePoint(text, at);
}

function adviceOnWord(word: string): string {
  if (/^(?:true|false|null)$/.test(word)) return "";
  if (/^(?:True|False|Null)$/.test(word)) return ` (write ${word.toLowerCase()})`;
  if (word === "None" || word === "undefined") return " (write null)";
  return " (write texts and names in double quotes)";
}

/** Names a character that cannot be seen, or looks like another, by its number. */
function toCodePoint(text: string, at: number): string {
  const number = text.codePointAt(at)?.toString(16).toUpperCase().padStart(4, "0");
  return `the character U+${number}: remove it`;
}
