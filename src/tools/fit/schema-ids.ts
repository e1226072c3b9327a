import { type Position, positionOf } from "../../schema/survey.ts";
import { type Fields, isFields, type Mending } from "./check.ts";

/**
 * Takes the `$id`s out of an output schema. The official SDK v1 compiles the schemas of a whole list with one validator, so
 * two servers that use the same `$id` get each other's schema, or have the list refused. Without references to it, or with
 * those only that begin with `#` at a root, an `$id` means nothing. With others the whole schema goes.
 */
export function removeIds(schema: Fields): Mending | undefined {
  const { ids, references } = survey(schema, "schema", { ids: [], references: [] });
  if (ids.length === 0) return undefined;
  const isOnlyRoot = ids.length === 1 && ids[0] === schema;
  const isInert = isOnlyRoot ? references.every((ref) => ref.startsWith("#")) : references.length === 0;
  const reason = "another server's schema may have the same";
  if (!isInert)
    return { instead: undefined, notes: [{ path: "", text: `removed: it refers to an $id, and ${reason}` }] };
  return { instead: withoutIds(schema, "schema"), notes: [{ path: "$id", text: `removed: ${reason}` }] };
}

const dataKeywords = new Set(["const", "default", "enum", "examples"]);

/** Validators look for `$id` under keywords they do not know, too. */
function placeOf(parent: Position, key: string): Position {
  const position = positionOf(parent, key);
  return position === "data" && parent === "schema" && !dataKeywords.has(key) ? "schema" : position;
}

interface Found {
  readonly ids: Fields[];
  readonly references: string[];
}

function survey(value: unknown, position: Position, found: Found): Found {
  if (Array.isArray(value)) for (const entry of value) survey(entry, position, found);
  if (!isFields(value) || position === "data") return found;
  if (position === "schema") {
    if (typeof value["$id"] === "string") found.ids.push(value);
    for (const keyword of ["$ref", "$dynamicRef", "$recursiveRef"]) {
      const reference = value[keyword];
      if (typeof reference === "string") found.references.push(reference);
    }
  }
  for (const [key, member] of Object.entries(value)) survey(member, placeOf(position, key), found);
  return found;
}

function withoutIds(value: unknown, position: Position): unknown {
  if (Array.isArray(value)) return value.map((entry) => withoutIds(entry, position));
  if (!isFields(value) || position === "data") return value;
  const members = Object.entries(value).filter(
    ([key, member]) => position !== "schema" || key !== "$id" || typeof member !== "string",
  );
  return Object.fromEntries(
    members.map(([key, member]) => [key, withoutIds(member, placeOf(position, key))]),
  );
}
