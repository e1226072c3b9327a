import { isDeepStrictEqual } from "node:util";
import type { JsonObject } from "@junctor/core/json";
import { type Document, isMap, isScalar, type Pair, parseDocument, stringify } from "yaml";
import { parseOrNone, type SectionEdit, SpliceError } from "./json-splice.ts";

export function parseYaml(file: string, text: string): JsonObject {
  const document = parseDocument(text, { uniqueKeys: true });
  const [error] = document.errors;
  if (error !== undefined) throw new SpliceError(file, error.message.split("\n")[0] ?? "it is not YAML");
  const value = toValue(file, document) ?? {};
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new SpliceError(file, "is not a mapping");
  return value as JsonObject;
}

/** Throws a `SpliceError` for an alias of nothing, or for more aliases than a person would write. */
function toValue(file: string, document: Document): unknown {
  try {
    return document.toJS() as unknown;
  } catch (error) {
    throw new SpliceError(file, error instanceof Error ? error.message : String(error));
  }
}

/**
 * Edits a mapping at the top of a YAML file by lines. The result is parsed, and is the old value with the edit, or a `SpliceError` is
 * thrown: mappings between brackets cannot be edited by lines.
 */
export function spliceYaml(file: string, text: string, { section, set, remove }: SectionEdit): string {
  const before = parseYaml(file, text);
  const eol = text.includes("\r\n") ? "\r\n" : "\n";
  const gone = [...remove, ...set.keys()];
  const kept = cutPairs(text, section, gone);
  const next = set.size === 0 ? kept : insert(kept, { section, set, eol });
  const members = Object.entries((before[section] ?? {}) as JsonObject).filter(
    ([name]) => !gone.includes(name),
  );
  const wanted = { ...before, [section]: { ...Object.fromEntries(members), ...Object.fromEntries(set) } };
  const actual = parseOrNone(() => parseYaml(file, next));
  if (actual === undefined || !isDeepStrictEqual({ ...actual, [section]: actual[section] ?? {} }, wanted))
    throw new SpliceError(
      file,
      `${section} is written in a way that cannot be edited without changing other parts`,
    );
  return next;
}

function pairsOf(text: string, section: string): readonly Pair[] {
  const { contents } = parseDocument(text);
  const found = isMap(contents) ? contents.get(section, true) : undefined;
  return isMap(found) ? found.items : [];
}

function cutPairs(text: string, section: string, names: readonly string[]): string {
  let next = text;
  for (const { key, value } of pairsOf(text, section).toReversed()) {
    if (!isScalar(key) || !names.includes(String(key.value))) continue;
    const start = text.lastIndexOf("\n", key.range?.[0] ?? 0) + 1;
    const end = (value as { range?: readonly number[] } | null)?.range?.[1] ?? key.range?.[1] ?? start;
    const lineEnd = text[end - 1] === "\n" ? end : text.indexOf("\n", end) + 1 || text.length;
    next = next.slice(0, start) + next.slice(lineEnd);
  }
  return next;
}

function insert(
  text: string,
  { section, set, eol }: Pick<SectionEdit, "section" | "set"> & { readonly eol: string },
): string {
  const [first] = pairsOf(text, section);
  const at = (first?.key as { range?: readonly number[] } | undefined)?.range?.[0];
  const line = at === undefined ? -1 : text.lastIndexOf("\n", at - 1) + 1;
  const indent = at === undefined ? "  " : text.slice(line, at);
  const written = stringify(Object.fromEntries(set), { lineWidth: 0 })
    .trimEnd()
    .split("\n")
    .map((each) => `${indent}${each}${eol}`)
    .join("");
  if (line !== -1) return text.slice(0, line) + written + text.slice(line);
  const empty = `^${section}:(?:[ \\t]*(?:\\{\\s*\\}|null|~))?([ \\t]+#.*?)?[ \\t]*\\r?$`;
  const header = new RegExp(empty, "m").exec(text);
  if (header === null)
    return `${text}${text === "" || text.endsWith("\n") ? "" : eol}${section}:${eol}${written}`;
  const end = text.indexOf("\n", header.index);
  const rest = end === -1 ? "" : text.slice(end + 1);
  return `${text.slice(0, header.index)}${section}:${header[1] ?? ""}${eol}${written}${rest}`;
}
