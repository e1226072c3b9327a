import { describeValue, type Position, positionOf } from "../schema/index.ts";
import {
  type Check,
  type Fields,
  type Mending,
  type Note,
  checkMembers,
  isFields,
  replaced,
  string,
  withChanges,
} from "./check.ts";

/** A schema that accepts the arguments of any call: they are always an object. */
const anyObject: Fields = { type: "object" };

/**
 * Makes a schema one that every client takes for the input of a tool. Arguments are always an object, so saying that
 * changes nothing. A text says why the schema cannot accept any object, which leaves nothing to call the tool with.
 */
export function mendInputSchema(schema: unknown): Mending | string | undefined {
  // An empty array is how PHP writes an empty object.
  const isEmpty = schema === undefined || schema === null || schema === true;
  if (isEmpty || (Array.isArray(schema) && schema.length === 0))
    return replaced(anyObject, `set to {"type":"object"}: ${describeMissing(schema)}`);
  if (!isFields(schema)) return `inputSchema is ${describeValue(schema)}, not a JSON Schema of an object`;
  const type = mendType(schema);
  if (type === "other")
    return `inputSchema has the type ${describeValue(schema["type"])}, but arguments are always an object`;
  return mendKeywords(schema, type);
}

/**
 * The same for the structured output of a tool. Before 2026-07-28 a root must be an object too; a server of such an age
 * that says something else has a schema that none of its results fit, so it is removed.
 */
export function mendOutputSchema(schema: unknown, isLegacy: boolean): Mending | undefined {
  if (!isFields(schema)) return removedSchema(`${describeValue(schema)} is not an object`);
  const type = isLegacy ? mendType(schema) : undefined;
  if (type === "other") return removedSchema(`its type is ${describeValue(schema["type"])}, not "object"`);
  const ids = removeIds(schema);
  if (ids === undefined || ids.instead === undefined) return ids ?? mendKeywords(schema, type);
  const rest = mendKeywords(ids.instead as Fields, type);
  return { instead: rest?.instead ?? ids.instead, notes: [...ids.notes, ...(rest?.notes ?? [])] };
}

/** What any schema of a tool needs, and a root type of "object" if there is a note about that. */
function mendKeywords(schema: Fields, type: Note | undefined): Mending | undefined {
  const finite = toFinite(schema) as Fields;
  const rest = checkMembers(finite, keywords);
  const notes = [
    ...(type === undefined ? [] : [type]),
    ...rest.notes,
    ...(finite === schema
      ? []
      : [{ path: "", text: "has numbers that no double holds: the largest is used" }]),
  ];
  if (notes.length === 0) return undefined;
  const changes = type === undefined ? rest.changes : { ...rest.changes, type: "object" };
  return { instead: withChanges(finite, changes), notes };
}

function removedSchema(reason: string): Mending {
  return { instead: undefined, notes: [{ path: "", text: `removed: ${reason}` }] };
}

function describeMissing(schema: unknown): string {
  return schema === undefined ? "it is missing" : `it is ${describeValue(schema)}`;
}

/** The types of JSON Schema that no object has. */
const otherTypes = new Set<unknown>(["array", "string", "number", "integer", "boolean", "null"]);

/** What to note about a root type that can be made "object"; `other` when it says that the value is no object. */
function mendType({ type }: Fields): Note | "other" | undefined {
  if (type === "object") return undefined;
  const all: readonly unknown[] = Array.isArray(type) ? type : [type];
  if (all.length > 0 && all.every((each) => otherTypes.has(each))) return "other";
  const was = type === undefined ? "missing" : describeValue(type);
  return { path: "type", text: `set to "object": it is ${was}` };
}

const strings: Check = (value) => {
  if (!Array.isArray(value)) return removedSchema(`${describeValue(value)} is not an array`);
  const kept = value.filter((entry) => typeof entry === "string");
  if (kept.length === value.length) return undefined;
  return replaced(kept, "loses the entries that are not strings");
};

/** Clients take objects only for the schemas of properties, though JSON Schema has booleans too. */
const properties: Check = (value) => {
  if (Array.isArray(value) && value.length === 0) return replaced({}, "set to {}: it is an empty array");
  if (!isFields(value)) return removedSchema(`${describeValue(value)} is not an object`);
  const wrong = Object.entries(value).filter(([, schema]) => !isFields(schema));
  if (wrong.length === 0) return undefined;
  const notes = wrong.map(([name, schema]) => {
    return { path: name, text: `set to ${JSON.stringify(toObject(schema))}: it is ${describeValue(schema)}` };
  });
  const mended = wrong.map(([name, schema]): [string, unknown] => [name, toObject(schema)]);
  return { instead: withChanges(value, Object.fromEntries(mended)), notes };
};

const toObject = (schema: unknown): object => (schema === false ? { not: {} } : {});

const keywords = { $schema: string, properties, required: strings };

/**
 * The same value if it has no number beyond what a double holds. Some clients refuse those, and others read `null` where the
 * definition was written anew for their revision.
 */
function toFinite(value: unknown): unknown {
  if (typeof value === "number") return Number.isFinite(value) ? value : Math.sign(value) * Number.MAX_VALUE;
  if (Array.isArray(value)) {
    const finite = value.map(toFinite);
    return finite.some((entry, index) => entry !== value[index]) ? finite : value;
  }
  if (!isFields(value)) return value;
  const members = Object.entries(value).map(([key, member]): [string, unknown] => [key, toFinite(member)]);
  return members.some(([key, member]) => member !== value[key]) ? Object.fromEntries(members) : value;
}

/**
 * Takes the `$id`s out of an output schema. The official SDK v1 compiles the schemas of a whole list with one validator, so
 * two servers that use the same `$id` get each other's schema, or have the list refused. Without references to it, or with
 * those only that begin with `#` at a root, an `$id` means nothing. With others the whole schema goes.
 */
function removeIds(schema: Fields): Mending | undefined {
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
