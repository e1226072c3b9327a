import { RawJson, editMembers } from "../json/index.ts";

/**
 * The JSON of listed things (tools, prompts, …), kept beside the object it belongs to. A definition that came from
 * elsewhere leaves as the bytes that came; a changed object is another object, and is written again.
 */
const definitions = new WeakMap<object, RawJson>();

/** The server of a listed thing and the name there, kept beside the object; a changed copy keeps it. */
const owners = new WeakMap<object, DefinitionOwner>();

export interface DefinitionOwner {
  readonly server: string;
  readonly ownName: string;
}

/** The owner of a listed thing; undefined for one that is in no composition. */
export function ownerOf(item: object): DefinitionOwner | undefined {
  return owners.get(item);
}

/** Sets the owner of a listed thing. */
export function setOwner(item: object, owner: DefinitionOwner): void {
  owners.set(item, owner);
}

/** The JSON of a listed thing, serialised at most once. */
export function definitionOf(item: object): RawJson {
  let raw = definitions.get(item);
  if (raw === undefined) {
    raw = RawJson.fromText(JSON.stringify(item));
    definitions.set(item, raw);
  }
  return raw;
}

/** The object a definition describes; its bytes are kept for the lists it will be in. The caller has checked its shape. */
export function fromDefinition<T extends object>(raw: RawJson): T {
  const item = raw.value as T;
  definitions.set(item, raw);
  return item;
}

/**
 * The same thing with some members changed, or removed if undefined, and every other byte of its definition as it was.
 */
export function withMembers<T extends object>(
  item: T,
  changes: { readonly [Member in keyof T]?: T[Member] | undefined },
): T {
  const members = Object.entries({ ...item, ...changes }).filter(([, value]) => value !== undefined);
  const changed = Object.freeze(Object.fromEntries(members)) as T;
  const raw = definitions.get(item);
  if (raw !== undefined) definitions.set(changed, rewrite(raw, item, changed));
  const owner = owners.get(item);
  if (owner !== undefined) owners.set(changed, owner);
  return changed;
}

/** The JSON of `from` changed to that of `to`. A value that is the same in both keeps its bytes, also inside of members. */
function rewrite(raw: RawJson, from: object, to: object): RawJson {
  const before = new Map<string, unknown>(Object.entries(from));
  const after = new Map<string, unknown>(Object.entries(to));
  const edits: [string, RawJson | undefined][] = [];
  for (const key of before.keys()) if (!after.has(key)) edits.push([key, undefined]);
  for (const [key, value] of after) {
    const old = before.get(key);
    if (Object.is(old, value)) continue;
    const member = isObject(old) && isObject(value) ? raw.at(key) : undefined;
    edits.push([
      key,
      member === undefined ? RawJson.fromValue(value) : rewrite(member, old as object, value as object),
    ]);
  }
  // Each member is compared with each edit.
  return edits.length > maxEdits ? RawJson.fromValue(to) : editMembers(raw, Object.fromEntries(edits));
}

/** If more members change, all are rewritten. */
const maxEdits = 100;

function isObject(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The same thing under another name, with every other byte of its definition as it was. */
export function withName<T extends { readonly name: string }>(item: T, name: string): T {
  return withMembers(item, { name } as Partial<T>);
}
