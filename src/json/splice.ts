import { Buffer } from "node:buffer";
import { JsonError } from "../errors/json-error.ts";
import { forEachMember, isKey } from "./checked.ts";
import { RawJson } from "./raw.ts";
import type { Span } from "./scan.ts";

/** What to do with the members of an object: set a key to a value, or remove it if undefined. */
export type MemberEdits = { readonly [key: string]: RawJson | undefined };

/**
 * Sets and removes members of an object. A member that is there is replaced in place, a new one becomes
 * the first; every other byte stays as it was. If a key occurs twice each occurrence is edited, so that
 * no reader finds the old value, whichever it prefers.
 *
 * @throws JsonError `json.not_an_object`
 * @example
 * const forwarded = editMembers(params, { name: RawJson.fromValue('search'), requestState: undefined });
 */
export function editMembers(raw: RawJson, edits: MemberEdits): RawJson {
  if (raw.kind !== "object") {
    throw new JsonError(
      "json.not_an_object",
      0,
      `Members can be set in an object only, not in a ${raw.kind}`,
    );
  }
  const entries = Object.entries(edits);
  if (entries.length === 0) return raw;
  // Values stay values only if all are: making a value of bytes would spell their numbers anew.
  const isCheap = raw.isValueOnly && entries.every(([, edit]) => edit === undefined || edit.isValueOnly);
  return isCheap
    ? editValue(raw.value as object, entries)
    : (editKnown(raw, entries) ?? editWalking(raw.bytes, entries));
}

type Edit = readonly [key: string, value: RawJson | undefined];

/** `fromEntries` defines properties instead of assigning them: `__proto__` stays a key like any other. */
function editValue(value: object, edits: readonly Edit[]): RawJson {
  const members = new Map<string, unknown>(Object.entries(value));
  const inserted: [string, unknown][] = [];
  for (const [key, edit] of edits) {
    if (edit === undefined) members.delete(key);
    else if (members.has(key)) members.set(key, edit.value);
    else inserted.push([key, edit.value]);
  }
  return RawJson.fromValue(Object.fromEntries([...inserted, ...members]));
}

/** Where the scan left a note of each member there is no need to walk over the object to find it. */
function editKnown(raw: RawJson, edits: readonly Edit[]): RawJson | undefined {
  const patches: { readonly span: Span; readonly value: RawJson }[] = [];
  for (const [key, value] of edits) {
    const span = raw.spanOf(key);
    if (span === undefined || value === undefined) return undefined;
    patches.push({ span, value });
  }
  patches.sort((a, b) => a.span.start - b.span.start);
  const chunks: Uint8Array[] = [];
  let copied = 0;
  for (const { span, value } of patches) {
    chunks.push(raw.bytes.subarray(copied, span.start), value.bytes);
    copied = span.end;
  }
  chunks.push(raw.bytes.subarray(copied));
  return RawJson.fromChecked(Buffer.concat(chunks));
}

function editWalking(bytes: Uint8Array, edits: readonly Edit[]): RawJson {
  const missing = new Set(edits);
  const chunks: Uint8Array[] = [];
  /** Everything before this is in the chunks or left out on purpose. */
  let copied = 1;
  let previousEnd = 1;
  let hasKept = false;
  let hasRemovedFirst = false;
  forEachMember(bytes, 0, (keyStart, keyEnd, valueStart, valueEnd) => {
    const edit = edits.find(([key]) => isKey(bytes, keyStart, keyEnd, key));
    if (edit !== undefined) missing.delete(edit);
    // A removed member takes the comma before it along, or the one behind it if nothing kept comes before.
    if (hasRemovedFirst && !hasKept) copied = keyStart;
    if (edit !== undefined && edit[1] === undefined) {
      if (hasKept) chunks.push(bytes.subarray(copied, previousEnd));
      else if (!hasRemovedFirst) chunks.push(bytes.subarray(copied, keyStart));
      hasRemovedFirst ||= !hasKept;
      copied = valueEnd;
    } else {
      hasKept = true;
      if (edit?.[1] !== undefined) {
        chunks.push(bytes.subarray(copied, valueStart), edit[1].bytes);
        copied = valueEnd;
      }
    }
    previousEnd = valueEnd;
  });
  chunks.unshift(openObject(missing, hasKept));
  chunks.push(bytes.subarray(copied));
  return RawJson.fromChecked(Buffer.concat(chunks));
}

/** The bytes of `{` and the members to insert behind it. */
function openObject(inserted: Iterable<Edit>, hasMore: boolean): Uint8Array {
  const chunks: Uint8Array[] = [];
  for (const [key, value] of inserted) {
    if (value === undefined) continue;
    chunks.push(Buffer.from(`${chunks.length === 0 ? "{" : ","}${JSON.stringify(key)}:`), value.bytes);
  }
  if (chunks.length === 0) return Buffer.from("{");
  if (hasMore) chunks.push(Buffer.from(","));
  return Buffer.concat(chunks);
}
