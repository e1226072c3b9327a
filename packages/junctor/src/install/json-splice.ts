import { isDeepStrictEqual } from "node:util";
import { BrandedError } from "@junctor/core/errors";
import type { JsonObject } from "@junctor/core/json";
import { createFindings, type JsonMember, type JsonNode, parseJsoncNode } from "../config/index.ts";

/** An edit of the object `section` at the top of a file. */
export interface SectionEdit {
  /** The key of the section, such as `mcpServers`. */
  readonly section: string;
  /** Members to add, or to replace where they are. */
  readonly set: ReadonlyMap<string, unknown>;
  /** Members to take out. */
  readonly remove: readonly string[];
}

/** A piece of a text that is replaced. */
interface TextCut {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** The value of a JSON file with comments, as clients have it; undefined when it is blank. Throws a `SpliceError`. */
export function parseJson(file: string, text: string): JsonNode | undefined {
  const findings = createFindings({ file, env: {} });
  try {
    const node = parseJsoncNode(text, findings);
    const [issue] = findings.issues;
    if (issue !== undefined) throw new SpliceError(file, `${issue.path} ${issue.message}`);
    return node;
  } catch (error) {
    if (error instanceof SpliceError) throw error;
    throw new SpliceError(file, error instanceof Error ? error.message : String(error));
  }
}

/** The members of a section; none when there is no such section. Throws a `SpliceError` when it is not an object. */
export function readJsonSection(file: string, text: string, section: string): JsonObject {
  const node = parseJson(file, text);
  if (node === undefined) return {};
  const found = findSection(file, node, section);
  return (found?.value ?? {}) as JsonObject;
}

/**
 * Edits a section by splicing: bytes that are not part of the edit stay as they are. The result is parsed, and is the old value
 * with the edit, or a `SpliceError` is thrown.
 */
export function spliceJson(file: string, text: string, edit: SectionEdit): string {
  const before = parseJson(file, text);
  const next = before === undefined ? createFile(text, edit) : splice(file, text, before, edit);
  const wanted = next === text ? before?.value : applyTo(before?.value ?? {}, edit);
  const actual = parseJson(file, next)?.value;
  if (!isDeepStrictEqual(actual, wanted))
    throw new SpliceError(file, "cannot be edited without changing other parts");
  // A program that does not know comments could read it before.
  if (before !== undefined && isPlain(text) && !isPlain(next))
    throw new SpliceError(file, "cannot be edited without making it something else than plain JSON");
  return next;
}

function createFile(text: string, { section, set }: SectionEdit): string {
  const gap = text === "" || text === "\uFEFF" || text.endsWith("\n") ? "" : "\n";
  return `${text}${gap}${JSON.stringify({ [section]: Object.fromEntries(set) }, null, 2)}\n`;
}

function applyTo(value: unknown, { section, set, remove }: SectionEdit): unknown {
  const top = value as JsonObject;
  const members = Object.entries(top[section] ?? {}).filter(([key]) => !remove.includes(key));
  return { ...top, [section]: Object.fromEntries([...members, ...set]) };
}

function splice(file: string, text: string, node: JsonNode, edit: SectionEdit): string {
  if (node.members === undefined) throw new SpliceError(file, "is not an object: expected { … }");
  const section = findSection(file, node, edit.section);
  const style = styleOf(text);
  if (section === undefined) {
    if (edit.set.size === 0) return text;
    const added = new Map([[edit.section, Object.fromEntries(edit.set)]]);
    return applyCuts(text, [insertInto(text, node, added, style)]);
  }
  const members = section.members ?? [];
  const replaced = members.filter(
    ({ key, node: { value } }) => edit.set.has(key) && !isDeepStrictEqual(value, edit.set.get(key)),
  );
  const added = new Map([...edit.set].filter(([key]) => !members.some((member) => member.key === key)));
  const isGone = ({ key }: JsonMember): boolean => edit.remove.includes(key) && !edit.set.has(key);
  const cuts: TextCut[] = replaced.map(({ key, node: { start, end } }) => ({
    start,
    end,
    text: write(edit.set.get(key), indentAt(text, start), style),
  }));
  cuts.push(...cutMembers(text, members, isGone));
  const left = { ...section, members: members.filter((member) => !isGone(member)) };
  if (added.size > 0) cuts.push(insertInto(text, left, added, style));
  return applyCuts(text, cuts);
}

/** Takes out members with their lines. If the last member goes, so does the comma of the new last one. */
function cutMembers(
  text: string,
  members: readonly JsonMember[],
  isGone: (member: JsonMember) => boolean,
): readonly TextCut[] {
  const cuts = members.filter(isGone).map(({ start, node, comma }): TextCut => {
    const end = comma === undefined ? node.end : comma + 1;
    const line = lineOf(text, start, end);
    return { ...(line ?? { start, end }), text: "" };
  });
  const last = members.findLast((member) => !isGone(member));
  const isCommaLeft =
    last?.comma !== undefined && members.at(-1) !== last && members.at(-1)?.comma === undefined;
  if (isCommaLeft && last.comma !== undefined)
    cuts.push({ start: last.comma, end: last.comma + 1, text: "" });
  return cuts;
}

/** The whole lines of a span, with the end of the last, if nothing else is on them. */
function lineOf(text: string, start: number, end: number): { start: number; end: number } | undefined {
  const before = text.lastIndexOf("\n", start - 1) + 1;
  const after = /^[ \t]*(?:\r?\n|$)/.exec(text.slice(end));
  if (after === null || text.slice(before, start).trim() !== "" || before === 0) return undefined;
  // The line end before it goes, and the one after it stays: the last member has none of its own.
  const lineEnd = text[before - 2] === "\r" ? before - 2 : before - 1;
  return { start: lineEnd, end: end + after[0].trimEnd().length };
}

interface Style {
  readonly eol: string;
  /** One level of indentation. */
  readonly unit: string;
}

/** How a file is written. */
function styleOf(text: string): Style {
  const eol = text.includes("\r\n") ? "\r\n" : "\n";
  const unit = /\n([ \t]+)\S/.exec(text)?.[1] ?? "  ";
  return { eol, unit: unit.includes("\t") ? "\t" : unit.length > 8 ? "  " : unit };
}

/** Right after the opening bracket, in the style of the first member. */
function insertInto(
  text: string,
  object: JsonNode,
  added: ReadonlyMap<string, unknown>,
  style: Style,
): TextCut {
  const at = object.start + 1;
  const first = object.members?.[0];
  const isLined = first !== undefined && text.slice(at, first.start).includes("\n");
  const outer = indentAt(text, object.start);
  const isOneLine = first !== undefined && !isLined;
  const indent = isLined ? indentAt(text, first.start) : `${outer}${style.unit}`;
  const items = Array.from(
    added,
    ([key, value]) => `${JSON.stringify(key)}: ${write(value, indent, isOneLine ? undefined : style)}`,
  );
  const comma = first === undefined ? "" : ",";
  if (isOneLine) return { start: at, end: at, text: `${items.join(", ")}${comma}` };
  const lines = items.join(`,${style.eol}${indent}`);
  const tail = first === undefined && !/^[ \t]*\r?\n/.test(text.slice(at)) ? `${style.eol}${outer}` : "";
  return { start: at, end: at, text: `${style.eol}${indent}${lines}${comma}${tail}` };
}

function write(value: unknown, indent: string, style: Style | undefined): string {
  if (style === undefined) return JSON.stringify(value);
  return JSON.stringify(value, null, style.unit).replaceAll("\n", `${style.eol}${indent}`);
}

/** The blanks at the start of the line that a place is on. */
function indentAt(text: string, at: number): string {
  const line = text.lastIndexOf("\n", at - 1) + 1;
  return /^[ \t]*/.exec(text.slice(line, at))?.[0] ?? "";
}

function findSection(file: string, { members = [] }: JsonNode, section: string): JsonNode | undefined {
  const found = members.find(({ key }) => key === section)?.node;
  if (found !== undefined && found.members === undefined)
    throw new SpliceError(file, `${section} is not an object: expected { … }`);
  return found;
}

function applyCuts(text: string, cuts: readonly TextCut[]): string {
  let next = text;
  for (const { start, end, text: own } of cuts.toSorted((a, b) => b.start - a.start || b.end - a.end))
    next = next.slice(0, start) + own + next.slice(end);
  return next;
}

function isPlain(text: string): boolean {
  try {
    JSON.parse(text.replace(/^\uFEFF/, ""));
    return true;
  } catch {
    return false;
  }
}

/** A file of a client that is left as it is, because it cannot be read or edited safely. */
export class SpliceError extends BrandedError {
  protected static override readonly brand = "SpliceError";

  override readonly name = "SpliceError";
  readonly code = "cli.splice";
  readonly file: string;

  constructor(file: string, text: string) {
    super(`${file} is left as it is: ${text}`);
    this.file = file;
  }
}

/** The result of an edit; undefined when it cannot be parsed: the user's file was valid, so the edit is wrong. */
export function parseOrNone<T>(parse: () => T): T | undefined {
  try {
    return parse();
  } catch (error) {
    if (error instanceof SpliceError) return undefined;
    throw error;
  }
}
