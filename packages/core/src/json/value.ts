/** A JSON object whose members are not known. */
export type JsonObject = { readonly [key: string]: unknown };

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A string without escapes is what stands between its quotes; most strings are, and need no parser. */
export function parseText(text: string): unknown {
  return text.charCodeAt(0) === 0x22 && !text.includes("\\") ? text.slice(1, -1) : JSON.parse(text);
}

/** What `JSON.stringify` makes of a value before writing it: `toJSON` called, NaN and ±Infinity null. */
export function toJsonValue(value: unknown): unknown {
  switch (typeof value) {
    case "undefined":
    case "function":
    case "symbol":
    case "bigint":
      throw new TypeError(
        `JSON has no ${typeof value}; pass a string, number, boolean, null, array or object`,
      );
    case "number":
      return Number.isFinite(value) ? value : null;
    case "object":
      return hasToJson(value) ? toJsonValue(value.toJSON("")) : value;
    default:
      return value;
  }
}

function hasToJson(value: object | null): value is { toJSON(key: string): unknown } {
  return value !== null && "toJSON" in value && typeof value.toJSON === "function";
}

/** What sort of JSON value it is. */
export type JsonKind = "object" | "array" | "string" | "number" | "boolean" | "null";

/** The kind of a JSON text, by its first byte. */
export function kindOfFirst(byte: number | undefined): JsonKind {
  switch (byte) {
    case 0x7b: // {
      return "object";
    case 0x5b: // [
      return "array";
    case 0x22: // "
      return "string";
    case 0x74: // t
    case 0x66: // f
      return "boolean";
    case 0x6e: // n
      return "null";
    default:
      return "number";
  }
}

/** The kind of a parsed value. */
export function kindOfValue(value: unknown): JsonKind {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return typeof value as JsonKind;
}
