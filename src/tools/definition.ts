import { RawJson } from "../json/raw.ts";
import { replaceMember } from "../json/splice.ts";

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

/** The same thing under another name, with every other byte of its definition as it was. */
export function withName<T extends { readonly name: string }>(item: T, name: string): T {
  const renamed = Object.freeze({ ...item, name });
  const raw = definitions.get(item);
  if (raw !== undefined) definitions.set(renamed, replaceMember(raw, "name", RawJson.fromValue(name)));
  return renamed;
}
