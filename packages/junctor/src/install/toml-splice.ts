import { isDeepStrictEqual } from "node:util";
import { isJsonObject, type JsonObject } from "@junctor/core/json";
import { parse } from "smol-toml";
import { parseOrNone, type SectionEdit, SpliceError } from "./json-splice.ts";

const begin = "# >>> junctor";
const end = "# <<< junctor";

export function parseToml(file: string, text: string): JsonObject {
  try {
    return parse(text);
  } catch (error) {
    throw new SpliceError(
      file,
      error instanceof Error ? (error.message.split("\n")[0] ?? "") : String(error),
    );
  }
}

/**
 * Edits a table of tables: the tables to take out go with their lines, ours are appended between two marks. The result is parsed, and
 * is the old value with the edit, or a `SpliceError` is thrown: inline tables, for example, cannot be edited in this way.
 */
export function spliceToml(file: string, text: string, { section, set, remove }: SectionEdit): string {
  const before = parseToml(file, text);
  const eol = text.includes("\r\n") ? "\r\n" : "\n";
  const gone = [...remove, ...set.keys()];
  const kept = cutTables(cutBlock(text), section, gone);
  const lines = [
    begin,
    ...Array.from(set, ([name, value]) => toTable(`${section}.${toKey(name)}`, value as JsonObject)).flat(),
    end,
  ];
  const gap = kept === "" || kept.endsWith("\n") ? "" : eol;
  const next = set.size === 0 ? kept : `${kept}${gap}${lines.join(eol)}${eol}`;
  const tables = Object.entries((before[section] ?? {}) as JsonObject).filter(
    ([name]) => !gone.includes(name),
  );
  const after = parseOrNone(() => parseToml(file, next));
  const { [section]: _, ...rest } = before;
  const { [section]: actual = {}, ...others } = after ?? {};
  const isRight =
    after !== undefined &&
    isDeepStrictEqual(toPlain(others), toPlain(rest)) &&
    isDeepStrictEqual(
      toPlain(actual),
      toPlain({ ...Object.fromEntries(tables), ...Object.fromEntries(set) }),
    );
  if (!isRight)
    throw new SpliceError(
      file,
      `${section} is written in a way that cannot be edited without changing other parts`,
    );
  return next;
}

/** The text without our block. A text of the file may look like a mark, so the last one counts: ours is at the end. */
function cutBlock(text: string): string {
  const block = new RegExp(`(^|\\n)${begin}\\r?\\n(?:(?!${begin})[^])*?${end}(?:\\r?\\n|$)`);
  return text.replace(block, "$1");
}

/** The text without the lines of some tables. Comments before the next table stay. */
function cutTables(text: string, section: string, names: readonly string[]): string {
  const lines = text.split(/(?<=\n)/);
  const kept: string[] = [];
  let waiting: string[] = [];
  let isCut = false;
  for (const line of lines) {
    const header = /^\s*\[\[?\s*([^\]]+?)\s*\]\]?/.exec(line)?.[1];
    if (header !== undefined) {
      // Blanks and comments at the end of a table belong to the next one.
      if (isCut) kept.push(...waiting);
      waiting = [];
      isCut = names.some((name) => isOf(header, section, name));
    }
    if (!isCut) kept.push(line);
    else if (/^\s*(?:#.*)?$/.test(line.trimEnd())) waiting.push(line);
    else waiting = [];
  }
  return [...kept, ...(isCut ? waiting.filter((line) => line.trim() !== "") : [])].join("");
}

function isOf(header: string, section: string, name: string): boolean {
  return [name, JSON.stringify(name), `'${name}'`].some((key) => {
    const whole = `${section}.${key}`;
    return header === whole || header.startsWith(`${whole}.`);
  });
}

function toTable(path: string, value: JsonObject): readonly string[] {
  const plain = Object.entries(value).filter(([, each]) => !isJsonObject(each));
  const tables = Object.entries(value).filter(([, each]) => isJsonObject(each));
  return [
    `[${path}]`,
    ...plain.map(([key, each]) => `${toKey(key)} = ${JSON.stringify(each)}`),
    ...tables.flatMap(([key, each]) => toTable(`${path}.${toKey(key)}`, each as JsonObject)),
  ];
}

function toKey(name: string): string {
  return /^[\w-]+$/.test(name) ? name : JSON.stringify(name);
}

/** Dates and the like are compared as text. */
function toPlain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}
