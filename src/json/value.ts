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
