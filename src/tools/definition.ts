import { RawJson } from "../json/raw.ts";
import { editMembers } from "../json/splice.ts";

/**
 * The JSON of listed things (tools, prompts, …), kept beside the object it belongs to. A definition that came from
 * elsewhere leaves as the bytes that came; an object somebody changed is another object, and is written anew.
 */
const definitions = new WeakMap<object, RawJson>();

/** The JSON of a listed thing, serialised at most once. */
export function definitionOf(item: object): RawJson {
  let raw = definitions.get(item);
  if (raw === undefined) {
    raw = RawJson.fromText(JSON.stringify(item));
    definitions.set(item, raw);
  }
  return raw;
}

/** The object a definition describes; its bytes are kept for whoever lists it. The caller has checked its shape. */
export function fromDefinition<T extends object>(raw: RawJson): T {
  const item = raw.value as T;
  definitions.set(item, raw);
  return item;
}

/** The same thing with some members changed, and every other byte of its definition as it was. */
export function withMembers<T extends object>(item: T, changes: Partial<T>): T {
  const changed = Object.freeze({ ...item, ...changes });
  const raw = definitions.get(item);
  if (raw === undefined) return changed;
  const edits = Object.entries(changes).map(([key, value]) => [key, RawJson.fromValue(value)] as const);
  definitions.set(changed, editMembers(raw, Object.fromEntries(edits)));
  return changed;
}

/** The same thing under another name, with every other byte of its definition as it was. */
export function withName<T extends { readonly name: string }>(item: T, name: string): T {
  return withMembers(item, { name } as Partial<T>);
}
