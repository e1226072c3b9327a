/**
 * What an object inside a schema document is. `$ref` is a reference in a schema, a property's name in a map, and
 * nothing at all in data.
 */
export type Position = "schema" | "map" | "data";

const mapKeywords = new Set([
  "$defs",
  "definitions",
  "dependencies",
  "dependentSchemas",
  "patternProperties",
  "properties",
]);

const schemaKeywords = new Set([
  "additionalItems",
  "additionalProperties",
  "allOf",
  "anyOf",
  "contains",
  "contentSchema",
  "else",
  "if",
  "items",
  "not",
  "oneOf",
  "prefixItems",
  "propertyNames",
  "then",
  "unevaluatedItems",
  "unevaluatedProperties",
]);

/**
 * The position of a member, from that of the object it is in. What sits under a keyword nobody defined is data until a
 * reference points into it; such references are followed by the compiler, and refused there if they lead nowhere.
 */
export function positionOf(parent: Position, key: string): Position {
  if (parent === "map") return "schema";
  if (parent === "data") return "data";
  if (mapKeywords.has(key)) return "map";
  return schemaKeywords.has(key) ? "schema" : "data";
}
